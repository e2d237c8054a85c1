# make demo                  from raw text to a pretrained tiny ALBERT that fills masks and
#                            is fine-tuned to tell libraries by their descriptions
# make demo CORPUS=my.txt    the same up to the masks, from text of one's own: a sentence a
#                            line, a blank line between documents (my.txt.gz will do)
# make test                  the tests; make test PYTEST_ARGS="-k golden" runs some of them
# make test-beam             the tests that need Apache Beam, in an environment of their own
# make lint                  formatting and lint
#
# PYTHON names the Python (3.10 to 3.12) that the virtual environment .venv is made of.
# Each step runs again only when something it is made from has changed.

PYTHON ?= python3
PYTEST_ARGS ?=
CORPUS ?=

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.PHONY: demo test test-beam lint FORCE

RUN := .venv/bin/python
INSTALL := $(RUN) -m pip install -qq --disable-pip-version-check
DEMO := demo/$(if $(CORPUS),$(basename $(basename $(notdir $(CORPUS)))),sample)
TEXT := $(or $(CORPUS),$(DEMO)/corpus.txt)
START := $(shell date +%s)

# The demo's numbers, for two cores.
VOCAB_SIZE := 8000
MAX_SEQ_LENGTH := 64
DUPE_FACTOR := 5
NUM_TRAIN_STEPS := 5000
LABELS := $(DEMO)/libraries
ACCURACY := sed -n 's/.*"accuracy": \(0[0-9.]\{4\}\).*/\1/p'
CLASSIFY := $(RUN) run_classifier.py --task=custom \
  --train_file=$(LABELS)/train.tsv --dev_file=$(LABELS)/dev.tsv \
  --max_seq_length=$(MAX_SEQ_LENGTH) --learning_rate=1e-3 \
  --num_train_steps=300 --num_warmup_steps=30 \
  --save_checkpoints_steps=100 --iterations_per_loop=100

demo: $(DEMO)/metadata.json $(DEMO)/masked.txt $(if $(CORPUS),,$(LABELS)/dev.tsv)
	@echo "== Pretraining (interrupted, the same command goes on where it was)"
	@$(RUN) run_pretraining.py --model=tiny --do_eval \
	  --input_file='$(DEMO)/train*.tfrecord' \
	  --eval_input_file=$(DEMO)/heldout.tfrecord \
	  --output_dir=$(DEMO)/model \
	  --num_train_steps=$(NUM_TRAIN_STEPS) --num_warmup_steps=500 \
	  --save_checkpoints_steps=1000
	@echo "== Filling masks"
	@$(RUN) predict.py fill-mask --model_folder=$(DEMO)/model < $(DEMO)/masked.txt
ifndef CORPUS
	@echo "== Fine-tuning: which library is described? First the pretrained network"
	@$(CLASSIFY) --init_checkpoint=$(DEMO)/model --output_dir=$(DEMO)/classifier
	@echo "== The same network from random weights"
	@$(CLASSIFY) --from_scratch --albert_config_file=$(DEMO)/model/albert_config.json \
	  --tokenizer=$(DEMO)/tokenizer --output_dir=$(DEMO)/classifier-from-scratch
	@echo "Accuracy on held-out modules: pretrained $$($(ACCURACY) $(DEMO)/classifier/scores.json)," \
	  "from random weights $$($(ACCURACY) $(DEMO)/classifier-from-scratch/scores.json)"
endif
	@echo "== Done in $$(($$(date +%s) - $(START))) s. The model is in $(DEMO)/model"

$(DEMO)/metadata.json: $(DEMO)/tokenizer/settings.json
	@echo "== Pretraining data"
	@rm -rf $(DEMO)/model $(DEMO)/classifier* $(DEMO)/*.tfrecord $@
	@$(RUN) -m data.create_pretraining_data --input_file=$(TEXT) \
	  --tokenizer=$(DEMO)/tokenizer \
	  --output_file=$(DEMO)/train.tfrecord \
	  --heldout_file=$(DEMO)/heldout.tfrecord --heldout_fraction=0.05 \
	  --max_seq_length=$(MAX_SEQ_LENGTH) \
	  --dupe_factor=$(DUPE_FACTOR) --num_shards=$(DUPE_FACTOR)

$(DEMO)/tokenizer/settings.json: $(TEXT) $(DEMO)/source .venv/.installed
	@echo "== Vocabulary"
	@rm -rf $(DEMO)/tokenizer
	@$(RUN) -m data.train_vocabulary --input_file=$(TEXT) --output_dir=$(DEMO)/tokenizer \
	  --vocab_size=$(VOCAB_SIZE) --soft_vocab_limit

# Names the text, so that another one of the same name is not taken for it.
$(DEMO)/source: FORCE
	@mkdir -p $(DEMO)
	@echo "$(TEXT)" | cmp --quiet - $@ || echo "$(TEXT)" > $@

ifdef CORPUS
$(CORPUS):
	@echo "error: CORPUS must name a text file. Received: $@, which does not exist." >&2; exit 1

# Three of the last sentences, which are held out, each with a word masked.
$(DEMO)/masked.txt: $(CORPUS) $(DEMO)/source
	@gzip -cdf $< | tail -n 50 | awk 'NF > 5 && NF < 16 { $$(int(NF / 2)) = "[MASK]"; print }' \
	  | tail -n 3 > $@
	@test -s $@ || echo "[MASK] [MASK] [MASK]." > $@
else
$(LABELS)/dev.tsv: .venv/.installed
	@echo "== Labelled texts"
	@rm -rf $(DEMO)/classifier*
	@$(RUN) -m data.sample_labels --output_dir=$(LABELS)

$(DEMO)/corpus.txt: .venv/.installed
	@echo "== Sample corpus"
	@$(RUN) -m data.sample_corpus --output_file=$@

$(DEMO)/masked.txt: $(DEMO)/source
	@printf '%s\n' "Returns a [MASK] with the same shape as the input." \
	  "If [MASK], the array will be copied." \
	  "This method is called [MASK] the file is closed." > $@
endif

test: .venv/.installed
	@$(RUN) -m pytest $(PYTEST_ARGS)

test-beam: .venv-beam/.installed
	@.venv-beam/bin/python -m pytest tests/test_beam_pipeline.py

.venv-beam/.installed: requirements-beam.txt requirements.txt
	@echo "== Installing $< into .venv-beam (minutes, the first time)"
	@$(PYTHON) -m venv .venv-beam
	@.venv-beam/bin/python -m pip install -qq --disable-pip-version-check -r $<
	@touch $@

lint: .venv/bin/ruff
	@$(RUN) -m ruff format --check .
	@$(RUN) -m ruff check .

.venv/bin/ruff: | .venv/.installed
	@$(INSTALL) $$(grep '^ruff' requirements-dev.txt)

.venv/.installed: requirements.txt | $(RUN)
	@echo "== Installing $< into .venv (minutes, the first time)"
	@$(INSTALL) -r $<
	@touch $@

.venv/.installed-dev: requirements-dev.txt requirements.txt | $(RUN)
	@echo "== Installing $< into .venv (minutes, the first time)"
	@$(INSTALL) -r $<
	@touch .venv/.installed $@

$(RUN):
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 13))' || \
	  { echo "error: PYTHON must be a Python of 3.10 to 3.12. Received: $(PYTHON)," \
	  "$$($(PYTHON) --version 2>&1). For example: make demo PYTHON=python3.11" >&2; exit 1; }
	@$(PYTHON) -m venv .venv
