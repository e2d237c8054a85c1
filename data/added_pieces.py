"""Adds pieces to a vocabulary; the ids of those that are there stay what they are."""

from sentencepiece import sentencepiece_model_pb2

USER_DEFINED = sentencepiece_model_pb2.ModelProto.SentencePiece.Type.USER_DEFINED


def with_pieces(tokenizer, pieces):
    """Makes a tokenizer that finds more pieces.

    A piece of a SentencePiece model is found wherever the text has it, in a word, too; one that
    begins with the word-start mark (U+2581) where a word begins with it. A WordPiece is a word,
    or, after "##", a part of one.

    Args:
        tokenizer: a Tokenizer.
        pieces: list[str].

    Returns:
        A Tokenizer of the same kind and settings; the new ids are behind the old.

    Raises:
        ValueError: a piece is there already, or no text can give it: the tokenizer's
            normalisation or its words leave no such piece.
    """
    known = [piece for piece in pieces if piece in tokenizer.pieces]
    if known or len(set(pieces)) < len(pieces) or not all(pieces):
        raise ValueError(
            f"Pieces to be added must be new, and distinct. Received: {', '.join(known or pieces)}."
        )
    settings = {name: value for name, value in tokenizer.settings.items() if name != "kind"}
    grown = type(tokenizer)(GROW[tokenizer.kind](tokenizer.model_bytes, pieces), settings)
    for piece in pieces:
        text = piece.removeprefix("##") if tokenizer.kind == "wordpiece" else piece
        if tokenizer.normalize(text) != text or not is_found(grown, piece):
            raise ValueError(
                "A text must be able to give each piece that is added: without blanks, and as "
                "lower-casing, accents and signs leave it. Received: "
                f"{piece!r}, of which {tokenizer.normalize(text)!r} remains."
            )
    return grown


def is_found(grown, piece):
    """Says whether a text gives the piece; a word's later part has no text of its own."""
    return piece.startswith("##") or piece in grown.tokenize(piece)


def grow_sentencepiece(model_bytes, pieces):
    proto = sentencepiece_model_pb2.ModelProto.FromString(model_bytes)
    for piece in pieces:
        proto.pieces.add(piece=piece, score=0.0, type=USER_DEFINED)
    return proto.SerializeToString()


def grow_wordpiece(model_bytes, pieces):
    text = model_bytes.decode("utf-8-sig")
    text = text if text.endswith("\n") else f"{text}\n"
    return (text + "".join(f"{piece}\n" for piece in pieces)).encode()


GROW = {"sentencepiece": grow_sentencepiece, "wordpiece": grow_wordpiece}
