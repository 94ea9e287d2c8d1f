"""Questions about Quire and their fixed answers, by area; `quire_questions.py` draws from them."""
