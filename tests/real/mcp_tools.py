"""Drives the MCP door as clients do: the SDK in both of its lifecycles, over both transports, and JSON-RPC by hand.

Usage: mcp_tools.py MW
"""

import asyncio
import base64
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

import httpx2
from jsonschema import Draft202012Validator
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

MW = os.path.abspath(sys.argv[1])
for name in list(os.environ):
    if name.startswith(("AWS_", "MW_", "TIGRIS_")) or name.lower().endswith("_proxy"):
        del os.environ[name]


class Server:
    """A server on a directory of its own."""

    def __enter__(self):
        self.dir = tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        self.env = {**os.environ, "MW_DATA": self.dir.name, "HOME": self.dir.name}
        self.process = subprocess.Popen(
            [MW, "serve", "--listen", "127.0.0.1:0"], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.endpoint = self.process.stdout.readline().decode().removeprefix("ready ").strip()
        assert self.endpoint.startswith("http://"), "the server is not ready"
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.dir.cleanup()

    def mw(self, *args):
        done = subprocess.run([MW, *args, "--json"], env=self.env, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        assert done.returncode == 0, (args, done.stderr)
        return json.loads(done.stdout)

    def key(self, *grants):
        return self.mw("key", "create", "test", *[word for grant in grants for word in ("--grant", grant)])


@contextlib.asynccontextmanager
async def over_http(server, key, world, mode):
    token = f"Bearer {key['id']}:{key['secret']}"
    url = f"{server.endpoint}/-/mcp" + (f"/{world}" if world else "")
    async with httpx2.AsyncClient(headers={"Authorization": token}, timeout=60) as http:
        async with Client(streamable_http_client(url, http_client=http), mode=mode, read_timeout_seconds=60) as client:
            yield client


@contextlib.asynccontextmanager
async def over_stdio(server, key, world, mode):
    env = {
        "MW_ENDPOINT": server.endpoint,
        "AWS_ACCESS_KEY_ID": key["id"],
        "AWS_SECRET_ACCESS_KEY": key["secret"],
        "HOME": server.dir.name,
        "PATH": os.environ["PATH"],
    }
    params = StdioServerParameters(command=MW, args=["mcp", *(["--world", world] if world else [])], env=env)
    async with Client(params, mode=mode, read_timeout_seconds=60) as client:
        yield client


async def ok(client, tool, **arguments):
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, (tool, arguments, result.content)
    # The SDK has checked the answer against the tool's output schema.
    assert json.loads(result.content[0].text) == result.structured_content
    return result.structured_content


async def refused(client, tool, *words, **arguments):
    result = await client.call_tool(tool, arguments)
    assert result.is_error, (tool, arguments, result.structured_content)
    text = result.content[0].text
    assert all(word in text for word in words), (tool, arguments, text)
    return text


async def pages(client, tool, field, **arguments):
    everything, cursor = [], None
    while True:
        page = await ok(client, tool, **arguments, **({"cursor": cursor} if cursor else {}))
        everything += page[field]
        cursor = page.get("next")
        if not cursor:
            return everything


async def every_tool(client):
    """One life: every tool, as a model would call them."""
    described = (await client.list_tools()).tools
    for tool in described:
        # Schemas that other validators take too: a client refuses a tool that it cannot check.
        Draft202012Validator.check_schema(tool.input_schema)
        Draft202012Validator.check_schema(tool.output_schema)
        assert tool.input_schema["type"] == tool.output_schema["type"] == "object", tool.name
        assert tool.description and tool.title and tool.annotations.read_only_hint is not None, tool.name
    tools = {tool.name for tool in described}
    assert tools >= set("list read write edit move remove find search stat diff history snapshot snapshots fork restore share".split())
    world = (await ok(client, "stat"))["world"]
    assert world["role"] == "admin"
    first = await ok(client, "write", path="notes/plan.md", text="# Plan\n\n- look\n- leap\n")
    assert (await ok(client, "read", path="notes/plan.md"))["text"].startswith("# Plan")
    assert (await ok(client, "read", path="notes/plan.md", offset=2, length=4))["text"] == "Plan"
    await ok(client, "edit", path="notes/plan.md", old="- leap", new="- leap twice")
    await refused(client, "edit", "does not occur", path="notes/plan.md", old="- leap once", new="")
    await ok(client, "write", path="notes/data.bin", base64=base64.b64encode(bytes(range(256))).decode())
    read = await ok(client, "read", path="notes/data.bin")
    assert base64.b64decode(read["base64"]) == bytes(range(256))
    await ok(client, "write", path="log.jsonl", text='{"n":1}\n', append=True)
    await ok(client, "write", path="log.jsonl", text='{"n":2}\n', append=True)
    found = await ok(client, "search", text="twice", glob="*.md")
    assert [(m["path"], m["line"]) for m in found["matches"]] == [("notes/plan.md", 4)]
    assert [e["path"] for e in (await ok(client, "find", glob="*.bin"))["entries"]] == ["notes/data.bin"]
    await ok(client, "snapshot", label="draft")
    await ok(client, "move", **{"from": "notes", "to": "archive/notes"})
    await ok(client, "remove", path="log.jsonl")
    diff = await ok(client, "diff", since="draft")
    assert {(c["path"], c["change"]) for c in diff["changes"]} >= {("log.jsonl", "deleted")}, diff
    await ok(client, "restore", path="log.jsonl", version="draft")
    assert (await ok(client, "read", path="log.jsonl"))["text"] == '{"n":1}\n{"n":2}\n'
    assert (await ok(client, "read", path="notes/plan.md", at=first["version"]))["text"].endswith("- leap\n")
    assert any(s.get("label") == "draft" for s in (await ok(client, "snapshots"))["snapshots"])
    entries = (await ok(client, "history", path="archive"))["entries"]
    assert entries and all(entry["version"].isdigit() for entry in entries)
    fork = (await ok(client, "fork", ttl_seconds=600))["fork"]
    await ok(client, "write", path="log.jsonl", text="only here", fork=fork)
    changes = (await ok(client, "diff", fork=fork))["changes"]
    assert [(c["path"], c["change"]) for c in changes] == [("log.jsonl", "modified")]
    assert (await ok(client, "read", path="log.jsonl"))["text"] == '{"n":1}\n{"n":2}\n'
    shared = await ok(client, "share", path="archive/notes/plan.md", expires_seconds=60)
    with urllib.request.urlopen(shared["url"]) as answer:
        assert b"leap twice" in answer.read()
    with contextlib.suppress(urllib.error.HTTPError):
        urllib.request.urlopen(shared["url"].replace("plan.md", "data.bin"))
        raise AssertionError("the URL of one file read another")
    for path in ["../other/f", "archive/../../f", "..", "a//b", "a/\0", "//etc/passwd"]:
        for tool in ["read", "list", "stat", "remove", "share"]:
            await refused(client, tool, "invalid: the path", path=path)
        await refused(client, "write", "invalid: the path", path=path, text="x")


async def mistakes(client):
    """What a model gets wrong, and what a hostile one tries: each is a refusal that it can read, and the session goes on."""
    await ok(client, "write", path="f", text="one\ntwo\n")
    for tool, arguments in [
        ("read", {}),
        ("read", {"path": 7}),
        ("read", {"path": "f", "offset": -1}),
        ("read", {"path": "f", "length": 0}),
        ("read", {"path": "f", "length": 2**70}),
        ("read", {"path": "f", "lenght": 5}),
        ("read", {"path": "f", "encoding": "utf-16"}),
        ("read", {"path": "f", "offset": 2**63}),
        ("read", {"path": "f", "at": "yesterday"}),
        ("list", {"path": "f/below"}),
        ("list", {"limit": 0}),
        ("list", {"limit": 10**9}),
        ("list", {"cursor": "!"}),
        ("search", {}),
        ("search", {"text": "a", "regex": "b"}),
        ("search", {"regex": "(unclosed"}),
        ("search", {"regex": "(?<=look)behind"}),
        ("search", {"regex": "(?:a{1000}){1000}"}),
        ("search", {"text": "x" * 5000}),
        ("find", {"glob": "[z-a]"}),
        ("find", {"glob": "*" * 2000}),
        ("write", {"path": "f"}),
        ("write", {"path": "f", "text": "x", "base64": "eA=="}),
        ("write", {"path": "f", "base64": "no base64"}),
        ("write", {"path": "f/g", "text": "x"}),
        ("write", {"path": "n" * 256, "text": "x"}),
        ("write", {"path": "/".join(["n" * 200] * 6), "text": "x"}),
        ("edit", {"path": "f", "old": "", "new": "x"}),
        ("edit", {"path": "f", "old": "three", "new": "x"}),
        ("move", {"from": "f", "to": "f/g"}),
        ("move", {"from": "gone", "to": "g"}),
        ("remove", {"path": ""}),
        ("restore", {"path": "f", "version": "1"}),
        ("history", {"cursor": "AAAA"}),
        ("snapshot", {"label": "\n"}),
        ("fork", {"name": "No Name"}),
        ("share", {"path": "gone"}),
        ("diff", {"since": "99999999999999999999999"}),
    ]:
        text = await refused(client, tool, **arguments)
        assert 10 < len(text) < 7000, (tool, arguments, text)
    # Names that are strange and allowed come back as they were given.
    for name in ["ü ñ 日本", "a\tb", "-rf", "*", "a'b\"c", "`x`", "$(x)", "CON", " lead", "e\u0301", "\u202e"]:
        await ok(client, "write", path=f"odd/{name}", text=name)
        assert (await ok(client, "read", path=f"odd/{name}"))["text"] == name
    listed = [entry["path"] for entry in (await ok(client, "list", path="odd"))["entries"]]
    assert len(listed) == 11, listed
    for path in listed:
        await ok(client, "stat", path=path)
    assert (await ok(client, "read", path="f"))["text"] == "one\ntwo\n"


async def large(client):
    """Ten thousand entries, and a file of 40 MB."""
    entries = await pages(client, "list", "entries", path="many", limit=1000)
    assert [e["path"] for e in entries] == [f"many/f{n:05}" for n in range(10_000)]
    usual = await ok(client, "list", path="many")
    assert len(usual["entries"]) == 100 and len(json.dumps(usual)) < 20_000
    assert len(await pages(client, "find", "entries", glob="f*7", path="many")) == 1000
    matches = await pages(client, "search", "matches", text="needle", path="large")
    assert [m["line"] for m in matches] == [1, 300_001, 600_000], matches
    last = await ok(client, "read", path="large", offset=matches[2]["offset"])
    assert last["text"].endswith("needle 2\n") and "next" not in last
    await refused(client, "edit", "too-large", path="large", old="needle 2", new="x")


def post(url, body, **headers):
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
    request = urllib.request.Request(url, data=body, headers=headers, method="POST")
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def by_hand(server, mine, root):
    """What no SDK sends."""
    url = f"{server.endpoint}/-/mcp"
    bearer = {"Authorization": f"Bearer {mine['id']}:{mine['secret']}"}
    ping = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "ping"}).encode()
    status, body = post(url, ping, **bearer)
    assert (status, json.loads(body)) == (200, {"jsonrpc": "2.0", "id": 7, "result": {}}), (status, body)
    status, body = post(f"{url}/mine", ping, **bearer)
    assert status == 200
    # No key, an unknown one and a wrong secret.
    assert post(url, ping)[0] == 401
    unknown = post(url, ping, Authorization="Bearer nobody:x")
    assert unknown == post(url, ping, Authorization=f"Bearer {mine['id']}:x") and unknown[0] == 401
    assert post(url, ping, Authorization="Bearer x")[0] == 401
    assert post(url, ping, Authorization="Basic eDp5")[0] == 401
    # Another world, existing or not, is one refusal.
    other = post(f"{url}/other", ping, **bearer)
    assert other[0] == 403 and other == post(f"{url}/missing", ping, **bearer) == post(f"{url}/%2e%2e", ping, **bearer), other
    # A key of several worlds must say which.
    status, body = post(url, ping, Authorization=f"Bearer {root['id']}:{root['secret']}")
    assert status == 400 and b"/-/mcp/WORLD" in body
    # Pages of other sites have no business here.
    assert post(url, ping, **bearer, Origin="https://evil.example")[0] == 403
    assert post(url, ping, **bearer, Origin=server.endpoint)[0] == 200
    # Nonsense.
    assert post(url, b"{", **bearer)[0] in (400, 415, 422)
    assert post(url, ping, **bearer, Accept="text/plain")[0] == 406
    status, body = post(url, b'{"jsonrpc":"2.0","id":1,"method":"nothing"}', **bearer)
    assert "error" in json.loads(body), body
    assert post(url, b" " * (17 << 20), **bearer)[0] == 413
    request = urllib.request.Request(url, headers=bearer, method="GET")
    try:
        urllib.request.urlopen(request)
        raise AssertionError("there is no stream to get")
    except urllib.error.HTTPError as error:
        assert error.code == 405
    # Signed like S3.
    signed = AWSRequest("POST", url, data=ping, headers={"Content-Type": "application/json", "Accept": "application/json, text/event-stream"})
    import hashlib
    signed.headers["x-amz-content-sha256"] = hashlib.sha256(ping).hexdigest()
    SigV4Auth(Credentials(mine["id"], mine["secret"]), "s3", "auto").add_auth(signed)
    headers = dict(signed.headers.items())
    assert post(url, ping, **headers)[0] == 200
    assert post(url, ping.replace(b"7", b"8"), **headers)[0] == 400, "a body that was not signed"
    assert post(f"{url}/mine", ping, **headers)[0] == 401, "a path that was not signed"
    # The secret does not travel over an open network; loopback is this machine's own.
    server.mw("key", "delete", mine["id"])
    assert post(url, ping, **bearer) == unknown


def stdio_by_hand(server, key):
    """Lines in, lines out; what is no message is answered too."""
    env = {**server.env, "MW_ENDPOINT": server.endpoint, "AWS_ACCESS_KEY_ID": key["id"], "AWS_SECRET_ACCESS_KEY": key["secret"]}
    lines = [
        "nonsense",
        "",
        '{"jsonrpc":"2.0","method":"notifications/initialized"}',
        '{"jsonrpc":"2.0","id":"a","method":"ping"}',
        '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"stat","arguments":{}}}',
    ]
    done = subprocess.run([MW, "mcp", "--world", "mine"], env=env, input="\n".join(lines).encode(), capture_output=True, check=True)
    answers = {json.dumps(answer.get("id")): answer for answer in map(json.loads, done.stdout.splitlines())}
    assert set(answers) == {"null", '"a"', "2"}, done.stdout
    assert answers["null"]["error"]["code"] == -32700
    assert answers["2"]["result"]["structuredContent"]["world"]["name"] == "mine"
    done = subprocess.run([MW, "mcp", "--world", "other"], env=env, input=b"", capture_output=True, check=False)
    assert done.returncode == 5 and b"denied" in done.stderr, done


async def scoped(client):
    """A key of a fork: its fork, the fork point, and nothing else."""
    await ok(client, "write", path="f", text="mine")
    assert [c["path"] for c in (await ok(client, "diff"))["changes"]] == ["f"]
    refusal = await refused(client, "read", "denied", path="f", fork="base")
    assert await refused(client, "read", "denied", path="f", fork="missing") == refusal
    await refused(client, "fork", "denied")
    assert "fork_of" not in (await ok(client, "stat"))["world"]


async def main():
    with Server() as server:
        root = json.load(open(f"{server.dir.name}/root-key.json"))
        for n, (over, mode) in enumerate((over, mode) for over in (over_http, over_stdio) for mode in ("legacy", "auto")):
            server.mw("world", "create", f"world-{n}")
            async with over(server, root, f"world-{n}", mode) as client:
                print(f"  every tool, {over.__name__} {mode}: protocol {client.protocol_version}", flush=True)
                await every_tool(client)
        print("  mistakes", flush=True)
        server.mw("world", "create", "wrong")
        for over in (over_http, over_stdio):
            async with over(server, root, "wrong", "auto") as client:
                await mistakes(client)
        print("  large", flush=True)
        server.mw("world", "create", "big")
        many = f"{server.dir.name}/many"
        os.mkdir(many)
        for n in range(10_000):
            open(f"{many}/f{n:05}", "w").close()
        with open(f"{server.dir.name}/large", "w") as large_file:
            line = "x" * 65 + "\n"
            large_file.write("needle 0\n" + line * 299_999 + "needle 1\n" + line * 299_998 + "needle 2\n")
        server.mw("put", many, "mw://big/many")
        server.mw("put", f"{server.dir.name}/large", "mw://big/large")
        async with over_http(server, root, "big", "auto") as client:
            await large(client)
        print("  scoped", flush=True)
        server.mw("world", "create", "base")
        server.mw("world", "create", "other")
        server.mw("fork", "base", "mine")
        mine = server.key("mine:editor")
        for over in (over_http, over_stdio):
            async with over(server, mine, None, "auto") as client:
                await scoped(client)
        print("  by hand", flush=True)
        stdio_by_hand(server, mine)
        by_hand(server, mine, root)
        server.mw("fsck")


asyncio.run(main())
