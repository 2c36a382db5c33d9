"""How the tiny conductor (`concertino-conductor`) is trained: `python -m concertino_train.conductor`.

wording    words from which everything is drawn
casts      questions, and pools that answer them or fail
leader     the scripted policy that is learned
examples   runs of it, as tokens
training   the training itself
trial      what came of it, on casts that training never showed
"""
