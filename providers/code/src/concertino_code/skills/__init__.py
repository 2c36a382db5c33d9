"""Agent Skills (agentskills.io): folders with a `SKILL.md`, as tools of a pool.

skill     one folder: its front matter, its instructions, its files      finding   the skills below a folder
member    a skill as a tool: instructions, files, and scripts in the sandbox
launch    how a script of a skill is started in the sandbox
"""
