# make demo                  from raw text to a pretrained tiny ALBERT that fills masks
# make demo CORPUS=my.txt    the same from text of one's own: a sentence a line, a blank
#                            line between documents (my.txt.gz will do)
# make test                  the tests; make test PYTEST_ARGS="-k golden" runs some of them
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
.PHONY: demo test lint FORCE

RUN := .venv/bin/python
INSTALL := $(RUN) -m pip install --quiet --disable-pip-version-check
DEMO := demo/$(if $(CORPUS),$(basename $(basename $(notdir $(CORPUS)))),sample)

# The demo's numbers. Two cores take about 8 minutes.
VOCAB_SIZE := 8000
MAX_SEQ_LENGTH := 64
DUPE_FACTOR := 5
NUM_TRAIN_STEPS := 1500

demo: $(DEMO)/records/metadata.json
	@echo "== Pretraining (interrupted, the same command goes on where it was)"
	@$(RUN) run_pretraining.py --model=tiny --do_eval \
	  --input_file=$(DEMO)/records/train.tfrecord \
	  --eval_input_file=$(DEMO)/records/heldout.tfrecord \
	  --output_dir=$(DEMO)/model \
	  --num_train_steps=$(NUM_TRAIN_STEPS) --num_warmup_steps=100 \
	  --save_checkpoints_steps=500
	@echo "== Filling masks"
	@$(RUN) predict.py fill-mask --model_folder=$(DEMO)/model < $(DEMO)/masked.txt
	@echo "== The model is in $(DEMO)/model"

$(DEMO)/records/metadata.json: $(DEMO)/tokenizer/settings.json
	@echo "== Pretraining data"
	@rm -rf $(DEMO)/records $(DEMO)/model
	@for part in heldout train; do \
	  $(RUN) -m data.create_pretraining_data \
	    --input_file=$(DEMO)/$$part.txt --output_file=$(DEMO)/records/$$part.tfrecord \
	    --tokenizer=$(DEMO)/tokenizer \
	    --max_seq_length=$(MAX_SEQ_LENGTH) \
	    --dupe_factor=$$([ $$part = train ] && echo $(DUPE_FACTOR) || echo 1); \
	done

$(DEMO)/tokenizer/settings.json: $(DEMO)/train.txt
	@echo "== Vocabulary"
	@rm -rf $(DEMO)/tokenizer
	@$(RUN) -m data.train_vocabulary --input_file=$< --output_dir=$(@D) \
	  --vocab_size=$(VOCAB_SIZE) --soft_vocab_limit

# The last twentieth of the documents is held out. Three sentences of it lend their words
# to the masks of a corpus of one's own.
$(DEMO)/train.txt: $(DEMO)/corpus.txt
	@awk -v RS= -v ORS='\n\n' -v folder=$(DEMO) \
	  'NR == FNR { documents = NR; next } \
	   { part = FNR > 0.95 * documents ? "heldout" : "train"; print > (folder "/" part ".txt") } \
	   END { if (documents < 2) { print "error: the text must have two documents at least, a" \
	     " blank line between them. Received: " documents "." > "/dev/stderr"; exit 1 } }' $< $<
ifdef CORPUS
	@awk 'NF > 5 && NF < 16 && NR % 7 == 0 && shown < 3 \
	  { $$(int(NF / 2)) = "[MASK]"; print; shown++ } \
	  END { if (!shown) print $$0 "[MASK]" }' $(DEMO)/heldout.txt > $(DEMO)/masked.txt
else
	@printf '%s\n' "Returns a [MASK] with the same shape as the input." \
	  "If [MASK], the array will be copied." \
	  "This method is called [MASK] the file is closed." > $(DEMO)/masked.txt
endif

ifdef CORPUS
$(CORPUS):
	@echo "error: CORPUS must name a text file. Received: $@, which does not exist." >&2; exit 1

$(DEMO)/corpus.txt: $(CORPUS) $(DEMO)/source .venv/.installed
	@gzip -cdf $< | LC_ALL=C sed 's/[[:space:]]*$$//' > $@

$(DEMO)/source: FORCE
	@mkdir -p $(@D)
	@echo "$(CORPUS)" | cmp --quiet - $@ || echo "$(CORPUS)" > $@
else
$(DEMO)/corpus.txt: .venv/.installed
	@echo "== Sample corpus"
	@$(RUN) -m data.sample_corpus --output_file=$@
endif

test: .venv/.installed
	@$(RUN) -m pytest $(PYTEST_ARGS)

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
