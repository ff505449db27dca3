#!/usr/bin/env bash
# The suite ceph/s3-tests against a real server; what of it fails, and why, is in design/0018.
#
# Usage: MW=path/to/mw S3_TESTS=path/to/s3-tests [PYTHON=python3] ceph_s3_tests.sh [pytest arguments]
# PYTHON needs the suite's requirements.txt and pytest-timeout; pytest-xdist allows `-n 2`. Nothing is fetched: without the suite it is skipped.
# Without arguments all of the files run that have anything to ask of this store. OUTCOMES=FILE keeps one line for each test.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
[[ -f ${S3_TESTS:-}/s3tests/functional/test_s3.py ]] || { echo "needs a checkout of ceph/s3-tests in S3_TESTS"; exit 77; }
python=${PYTHON:-python3}
"$python" -c 'import boto3, lxml, munch, pytest, pytest_timeout' 2>"${TMPDIR:-/tmp}/s3-tests.$$" || {
    tail -n 1 "${TMPDIR:-/tmp}/s3-tests.$$"
    rm -f "${TMPDIR:-/tmp}/s3-tests.$$"
    exit 77
}
rm -f "${TMPDIR:-/tmp}/s3-tests.$$"
# shellcheck source=../real/server.inc
. "$here/../real/server.inc"

# Buckets are made by keys for all worlds. Whoever else comes reaches none of them, or all (ALT=*:admin): one account has no strangers who own buckets.
reads_nothing='{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"s3:GetObject","Resource":"arn:aws:s3:::nowhere/*"}}'
printf '%s' "$reads_nothing" >"$work/policy"
other=(--policy "$work/policy")
[[ -z ${ALT:-} ]] || other=(--grant "$ALT")
pair() { python3 -c 'import json,sys; k=json.load(sys.stdin); print("access_key =", k["id"]); print("secret_key =", k["secret"])'; }
key() { "$MW" --json key create "$@" | pair; }
section() { printf '\n[%s]\ndisplay_name = %s\nuser_id = %s\nemail = nobody@example.com\ntenant =\n' "$1" "$2" "$2"; }
port=${endpoint##*:}
{
    printf '[DEFAULT]\nhost = 127.0.0.1\nport = %s\nis_secure = False\n\n[fixtures]\nbucket prefix = ceph-{random}-\n' "$port"
    section 's3 main' manyworlds && key main --grant '*:admin'
    section 's3 alt' alt && key alt "${other[@]}"
    section 's3 tenant' tenant && key tenant "${other[@]}"
    for name in iam 'iam root' 'iam alt root'; do
        section "$name" "$AWS_ACCESS_KEY_ID"
        printf 'access_key = %s\nsecret_key = %s\n' "$AWS_ACCESS_KEY_ID" "$AWS_SECRET_ACCESS_KEY"
    done
} >"$work/s3tests.conf"

unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_ENDPOINT_URL AWS_ENDPOINT_URL_S3 AWS_ENDPOINT_URL_IAM AWS_ENDPOINT_URL_STS
export S3TEST_CONF=$work/s3tests.conf PYTHONPATH=$here MW_OUTCOMES=${OUTCOMES:-$work/outcomes} PYTHONDONTWRITEBYTECODE=1
export AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1
cd "$S3_TESTS"
functional=s3tests/functional
[[ $# -gt 0 ]] || set -- "$functional"/test_{s3,headers,iam,sts,sns,s3select}.py
"$python" -m pytest -p ceph_s3_tests -p no:cacheprovider -q -r N --tb=no --no-header -W ignore --timeout 120 "$@"
ended
