"""Members of a pool: tools, agents and models, as providers declare them, and the context that a call receives.

specs       tools, agents and models              routing        several models under one name
signature   the schema of a function              patterns       how members are named in bulk
context     what a call receives                  model_agent    an agent that is one request to a model
import_path members that another process imports

They are public as `concertino.tool`, `concertino.ModelSpec` and so on.
"""
