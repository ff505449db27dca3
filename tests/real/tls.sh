#!/usr/bin/env bash
# TLS, with the clients that people use: a local authority that `mw env` has them trust, a certificate of one's own, and its exchange while
# the server runs.
set -uo pipefail
cd "$(dirname "$0")" || exit 1
for program in openssl curl aws node jq; do command -v "$program" >/dev/null || { echo "needs $program"; exit 77; }; done
python3 -c 'import boto3' 2>/dev/null || { echo "needs boto3"; exit 77; }
for name in $(env | sed -n 's/^\(AWS_[A-Z0-9_]*\|MW_[A-Z0-9_]*\|TIGRIS_[A-Z0-9_]*\|SSL_CERT_FILE\|CURL_CA_BUNDLE\|REQUESTS_CA_BUNDLE\|NODE_EXTRA_CA_CERTS\)=.*/\1/p'); do
    [ "$name" = MW_VENV ] || unset "$name"
done

base=/dev/shm; [ -d "$base" ] || base=${TMPDIR:-/tmp}
work=$(mktemp -d "$base/mw-tls.XXXXXX")
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT
export HOME=$work MW_DATA=$work/data
fail() { echo "tls: $*" >&2; tail -n 20 "$work/log" >&2; exit 1; }

start() {
    : >"$work/out"
    "$MW_BIN" serve --listen 127.0.0.1:0 "$@" >"$work/out" 2>"$work/log" & server=$!
    for _ in $(seq 400); do
        grep -q '^ready ' "$work/out" && break
        kill -0 "$server" 2>/dev/null || fail "mw serve ended"
        sleep 0.05
    done
    endpoint=$(sed -n 's/^ready //p' "$work/out")
    case $endpoint in https://127.0.0.1:*) ;; *) fail "ready said $endpoint" ;; esac
    port=${endpoint##*:}
}
stop() { kill "$server"; wait "$server" || fail "the server did not end well"; server=; }
serial() { openssl s_client -connect "127.0.0.1:$port" -servername localhost </dev/null 2>/dev/null | openssl x509 -noout -serial; }

MW_BIN=$MW; unset MW
echo "  a local authority"
start --tls
[ "$(stat -c %a "$MW_DATA/tls")" = 700 ] || fail "the folder of the keys is open to others"
for key in ca-key.pem server-key.pem; do [ "$(stat -c %a "$MW_DATA/tls/$key")" = 600 ] || fail "$key is open to others"; done
# Commands beside the server need no setting.
"$MW_BIN" world create tls >/dev/null || fail "mw world create"
# Without trust nobody connects.
curl -sS "$endpoint/-/healthz" 2>/dev/null && fail "curl trusts what nobody told it to"
block=$("$MW_BIN" env) || fail "mw env"
eval "$block"
[ "$MW_ENDPOINT" = "$endpoint" ] && [ -s "$NODE_EXTRA_CA_CERTS" ] && [ -s "$AWS_CA_BUNDLE" ] || fail "mw env lacks something: $block"
grep -q '"ok":true' <(curl -sS --fail "$endpoint/-/healthz") || fail "curl"
grep -q '"ok":true' <(curl -sS --fail "https://localhost:$port/-/healthz") || fail "curl by name"
[ "$(curl -sS -o /dev/null -w '%{http_code}' "http://127.0.0.1:$port/")" = 400 ] || fail "plain HTTP is not told about TLS"
grep -q 'https://' <(curl -sS "http://127.0.0.1:$port/") || fail "plain HTTP is not told about TLS"
# The command line over TLS, found by its variable; also without the bundle, by the authority of its directory.
"$MW_BIN" world list | grep -q tls || fail "mw over TLS"
env -u AWS_CA_BUNDLE -u SSL_CERT_FILE "$MW_BIN" world list | grep -q tls || fail "mw with the authority of its directory"
env -u AWS_CA_BUNDLE -u SSL_CERT_FILE MW_DATA="$work/other" "$MW_BIN" world list >/dev/null 2>"$work/err" && fail "mw trusts a stranger"
grep -q 'AWS_CA_BUNDLE' "$work/err" || fail "mw does not say how to trust: $(cat "$work/err")"
echo "  boto3, whose uploads have trailers over TLS"
python3 - <<'P' || fail "boto3"
import boto3, os
seen = []
s3 = boto3.client("s3")
s3.meta.events.register("before-send.s3.PutObject", lambda request, **_: seen.append({k.lower(): v for k, v in request.headers.items()}))
body = os.urandom(300_000)
s3.put_object(Bucket="tls", Key="k", Body=body, ChecksumAlgorithm="CRC32")
import io
class Stream(io.RawIOBase):
    def __init__(self): self.inner = io.BytesIO(body)
    def readable(self): return True
    def readinto(self, b): return self.inner.readinto(b)
    def seekable(self): return True
    def seek(self, *a): return self.inner.seek(*a)
    def tell(self): return self.inner.tell()
s3.upload_fileobj(io.BytesIO(os.urandom(20_000_000)), "tls", "large")
s3.put_object(Bucket="tls", Key="s", Body=Stream(), ChecksumAlgorithm="SHA256")
assert s3.get_object(Bucket="tls", Key="k")["Body"].read() == body
assert s3.get_object(Bucket="tls", Key="s")["Body"].read() == body
trailers = [h for h in seen if h.get("x-amz-trailer", b"")]
assert trailers, [sorted(h) for h in seen]
sha = trailers[-1]["x-amz-content-sha256"]
assert (sha.decode() if isinstance(sha, bytes) else sha) == "STREAMING-UNSIGNED-PAYLOAD-TRAILER", trailers
P
echo "  aws, node, curl"
head -c 9000000 /dev/urandom >"$work/file"
aws s3 cp --quiet "$work/file" s3://tls/aws && aws s3 cp --quiet s3://tls/aws "$work/back" && cmp -s "$work/file" "$work/back" || fail "aws"
node -e 'fetch(process.argv[1]+"/-/healthz").then(r=>r.json()).then(j=>process.exit(j.ok?0:1),e=>{console.error(e);process.exit(1)})' "$endpoint" || fail "node"
curl -sS --fail --aws-sigv4 aws:amz:auto:s3 -H "x-amz-content-sha256: UNSIGNED-PAYLOAD" --user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" -o "$work/back" "$endpoint/tls/aws" &&
    cmp -s "$work/file" "$work/back" || fail "curl with a signature"
url=$(aws s3 presign s3://tls/aws) && curl -sS --fail -o "$work/back" "$url" && cmp -s "$work/file" "$work/back" || fail "a presigned URL"
# URLs that the server makes are encrypted ones: also for whoever came by the listener without TLS, as sandboxes do.
near=$(sed -n 's/.*"local": *"\([^"]*\)".*/\1/p' "$MW_DATA/server.json")
case $near in http://127.0.0.1:*) ;; *) fail "there is no listener without TLS: $near" ;; esac
for by in "$endpoint" "$near"; do
    url=$(curl -sS --fail --aws-sigv4 aws:amz:auto:s3 --user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" -H 'accept: application/json' -H 'x-amz-content-sha256: UNSIGNED-PAYLOAD' \
        -H 'content-type: application/json' -d '{"bucket":"tls","key":"aws","type":"get"}' "$by/?func=presign" | jq -r .url)
    case $url in "$endpoint/tls/aws?"*) ;; *) fail "presigned by way of $by: $url" ;; esac
    curl -sS --fail -o "$work/back" "$url" && cmp -s "$work/file" "$work/back" || fail "a URL that the server presigned"
done
python3 - "$endpoint" <<'P' || fail "the address of what a form or an upload made"
import boto3, ssl, sys, os, urllib3
s3 = boto3.client("s3")
form = s3.generate_presigned_post("tls", "form", Fields={"success_action_status": "201"}, Conditions=[{"success_action_status": "201"}])
http = urllib3.PoolManager(ca_certs=os.environ["AWS_CA_BUNDLE"])
said = http.request("POST", form["url"], fields={**form["fields"], "file": ("f", b"x")})
assert said.status == 201 and said.headers["location"] == sys.argv[1] + "/tls/form", (said.status, said.headers)
begun = s3.create_multipart_upload(Bucket="tls", Key="m")["UploadId"]
part = s3.upload_part(Bucket="tls", Key="m", UploadId=begun, PartNumber=1, Body=b"x")["ETag"]
made = s3.complete_multipart_upload(Bucket="tls", Key="m", UploadId=begun, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part}]})
assert made["Location"] == sys.argv[1] + "/tls/m", made
P
echo "  a restart keeps the authority and makes a new certificate"
before=$(serial) authority=$(sha256sum <"$MW_DATA/tls/ca.pem")
stop; unset MW_ENDPOINT
start --tls
[ "$(serial)" != "$before" ] && [ "$(sha256sum <"$MW_DATA/tls/ca.pem")" = "$authority" ] || fail "authority or certificate"
curl -sS --fail "$endpoint/-/healthz" >/dev/null || fail "the authority is trusted no more"
# A sandbox speaks to the store without TLS, through the server itself.
if [ -e /dev/fuse ] && command -v bwrap >/dev/null; then
    "$MW_BIN" exec tls -- sh -c 'curl -sS --fail "$AWS_ENDPOINT_URL_S3/-/healthz"' 2>"$work/err" | grep -q '"ok":true' || fail "a sandbox cannot reach the store: $(cat "$work/err")"
fi
stop

echo "  a certificate of one's own, exchanged while the server runs"
authority() { openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=$1" -keyout "$work/$1.key" -out "$work/$1.pem" 2>/dev/null; }
leaf() {
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=own -keyout "$work/$1.key" -out "$work/$1.csr" 2>/dev/null &&
        openssl x509 -req -in "$work/$1.csr" -CA "$work/ca.pem" -CAkey "$work/ca.key" -CAcreateserial -days 1 -out "$work/$1.pem" \
            -extfile <(printf 'subjectAltName=DNS:localhost,IP:127.0.0.1') 2>/dev/null
}
authority ca && leaf one && leaf two || fail "openssl"
cp "$work/one.pem" "$work/cert.pem"; cp "$work/one.key" "$work/cert.key"
"$MW_BIN" serve --listen 127.0.0.1:0 --tls-cert "$work/cert.pem" --tls-key "$work/two.key" >/dev/null 2>"$work/err" && fail "a foreign key was taken"
grep -q 'not the key of the certificate' "$work/err" || fail "a foreign key: $(cat "$work/err")"
"$MW_BIN" serve --listen 127.0.0.1:0 --tls-cert "$work/cert.pem" >/dev/null 2>&1; [ $? = 2 ] || fail "a certificate without a key was taken"
start --tls-cert "$work/cert.pem" --tls-key "$work/cert.key"
export CURL_CA_BUNDLE=$work/ca.pem
curl -sS --fail "$endpoint/-/healthz" >/dev/null || fail "curl with a certificate of one's own"
one=$(serial)
# The certificate alone does not fit the key: the old pair goes on.
cp "$work/two.pem" "$work/cert.pem"; kill -HUP "$server"; sleep 0.5
[ "$(serial)" = "$one" ] || fail "half of a pair was taken"
curl -sS --fail "$endpoint/-/healthz" >/dev/null || fail "half of a pair broke the server"
cp "$work/two.key" "$work/cert.key"; kill -HUP "$server"
for _ in $(seq 100); do [ "$(serial)" != "$one" ] && break; sleep 0.1; done
[ "$(serial)" != "$one" ] || fail "SIGHUP did not load the new certificate"
curl -sS --fail "$endpoint/-/healthz" >/dev/null || fail "curl after the exchange"
# And without being told, within a few seconds.
two=$(serial)
sleep 1; cp "$work/one.pem" "$work/cert.pem"; cp "$work/one.key" "$work/cert.key"
for _ in $(seq 120); do [ "$(serial)" != "$two" ] && break; sleep 0.1; done
[ "$(serial)" != "$two" ] || fail "a changed file was not noticed"
stop
