"""The tools: `search` and `read` over a corpus, `web_search`, `fetch_page`. Their calls import what is heavy."""
