"""The training of the tiny conductor of concertino-toy: `python -m concertino_train.conductor`.

rows      conversations as tokens
training  the training itself
"""
