"""Members of a pool for programs and frameworks that are not concertino: the way out, as `Pool.of` is the way in.

    pay = ct.as_function(pool, "bank/pay", deps=bank)                 # await pay(amount=3)
    tool = ct.as_langchain_tool(pool, "bank/pay")                     # a StructuredTool
    tool = ct.as_openai_agents_tool(pool, "bank/pay")                 # a FunctionTool

outlet          one member, called from outside     function   as a plain async function
langchain       as a tool of LangChain              openai_agents, strict_schema   as a tool of openai-agents

A call takes the path of any other: arguments are read and validated with the schema that the framework was given,
deadlines, retries, isolation and the budget hold, agents call their models and members. The packages of frameworks are
imported where they are asked for, and nowhere else.
"""

from .function import as_function
from .langchain import as_langchain_tool
from .openai_agents import as_openai_agents_tool

__all__ = ["as_function", "as_langchain_tool", "as_openai_agents_tool"]
