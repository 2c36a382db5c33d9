"""A vLLM server and its life: started, asked, given weights, ended."""
