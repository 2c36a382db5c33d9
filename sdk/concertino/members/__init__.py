"""Members of a pool: tools, agents and models, as providers declare them, and the context that a call receives.

specs         tools, agents and models         routing       several models under one name
signature     the schema of a function         patterns      how members are named in bulk
context       what a call receives             model_agent   a model that is called like an agent
import_path   where another process finds a function
ranking       whom to ask first, from plugins  value_type    types of results, replies and answers
foreign       functions and foreign tools as members; parameters   a schema as the parameters of a function

They are public as `concertino.tool`, `concertino.ModelSpec` and so on.
"""
