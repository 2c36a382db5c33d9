"""Ask a served pool with the official client. OPENAI_BASE_URL says where it is served."""

from openai import OpenAI

client = OpenAI()
question = (
    "The number of each Cable Layer's Mail Sack equals each Mail Sack's Copper Coil. "
    "The number of each Mail Sack's Copper Coil equals 2. How many Mail Sack does Cable Layer have?"
)

print("models:", ", ".join(model.id for model in client.models.list()))

chat = client.chat.completions.create(model="helper", messages=[{"role": "user", "content": question}])
print("chat:", chat.choices[0].message.content)

with client.responses.stream(model="helper", input=question) as stream:
    for event in stream:
        if event.type == "response.output_item.done" and event.item.type == "mcp_call":
            print("call:", event.item.name, event.item.status)
        elif event.type == "response.output_text.done":
            print("answer:", event.text)
    response = stream.get_final_response()

again = client.responses.retrieve(response.id)
print("read again:", again.output_text == response.output_text)
