#!/usr/bin/env bash
# The AWS command line as a client of keys: iam and sts, unmodified, against a real server.
#
# Usage: MW=path/to/mw [MW_VENV=path/to/venv] keys.sh
# Without the AWS CLI it is skipped and named, or fails when CI is true.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=server.inc
. "$here/server.inc"
command -v aws >/dev/null || { lacks aws; echo "needs the AWS CLI"; exit 77; }
export AWS_PAGER= AWS_MAX_ATTEMPTS=1 AWS_EC2_METADATA_DISABLED=true

root_id=$AWS_ACCESS_KEY_ID root_secret=$AWS_SECRET_ACCESS_KEY
field() { python3 -c 'import json,sys
value = json.load(sys.stdin)
for name in sys.argv[1].split("."): value = value[name]
print(value)' "$1"; }
as() { # ID SECRET TOKEN COMMAND...
    AWS_ACCESS_KEY_ID=$1 AWS_SECRET_ACCESS_KEY=$2 AWS_SESSION_TOKEN=$3 "${@:4}"
}
refused() { # WORDS COMMAND...
    local out
    if out=$("${@:2}" 2>&1); then echo "should have been refused: ${*:2}"; exit 1; fi
    [[ $out == *"$1"* ]] || { echo "refused in other words: $out"; exit 1; }
}
step() { echo "ok: $*"; }

aws s3 mb s3://base >/dev/null
aws s3 mb s3://other >/dev/null
echo one >"$work/one"
aws s3 cp "$work/one" s3://base/docs/one >/dev/null
aws s3 cp "$work/one" s3://base/top >/dev/null
aws s3 cp "$work/one" s3://other/top >/dev/null

[[ $(aws sts get-caller-identity | field UserId) == "$root_id" ]]
step "sts get-caller-identity"

made=$(aws iam create-access-key --user-name robot)
id=$(field AccessKey.AccessKeyId <<<"$made") secret=$(field AccessKey.SecretAccessKey <<<"$made")
[[ $(aws iam list-access-keys --user-name robot --query 'AccessKeyMetadata[0].AccessKeyId' --output text) == "$id" ]]
refused AccessDenied as "$id" "$secret" "" aws s3 ls s3://base/
step "iam create-access-key, list-access-keys: a key without rights"

cat >"$work/policy.json" <<'JSON'
{"Version": "2012-10-17", "Statement": [
  {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": "arn:aws:s3:::base",
   "Condition": {"StringLike": {"s3:prefix": "docs/*"}, "IpAddress": {"aws:SourceIp": "127.0.0.0/8"}}},
  {"Effect": "Allow", "Action": "s3:*Object*", "Resource": "arn:aws:s3:::base/docs/*"}]}
JSON
arn=$(aws iam create-policy --policy-name docs --policy-document "file://$work/policy.json" | field Policy.Arn)
aws iam attach-user-policy --user-name "$id" --policy-arn "$arn"
as "$id" "$secret" "" aws s3 cp s3://base/docs/one "$work/back" >/dev/null
cmp "$work/one" "$work/back"
as "$id" "$secret" "" aws s3 ls s3://base/docs/ | grep -q one
as "$id" "$secret" "" aws s3 cp "$work/one" s3://base/docs/two >/dev/null
refused 403 as "$id" "$secret" "" aws s3 cp s3://base/top "$work/back"
refused AccessDenied as "$id" "$secret" "" aws s3 ls s3://base/
refused AccessDenied as "$id" "$secret" "" aws iam list-policies
refused MalformedPolicyDocument aws iam create-policy --policy-name bad --policy-document '{"Version":"2012-10-17","Statement":[]}'
step "iam create-policy, attach-user-policy: prefix, address and actions"

aws iam detach-user-policy --user-name "$id" --policy-arn "$arn"
refused 403 as "$id" "$secret" "" aws s3 cp s3://base/docs/one "$work/back"
aws iam delete-policy --policy-arn "$arn"
refused NoSuchEntity aws iam get-policy --policy-arn "$arn"
step "iam detach-user-policy, delete-policy"

given=$(aws sts assume-role --role-arn arn:aws:iam::000000000000:role/base/editor --role-session-name agent)
get() { field "Credentials.$1" <<<"$given"; }
as "$(get AccessKeyId)" "$(get SecretAccessKey)" "$(get SessionToken)" aws s3 cp "$work/one" s3://base/by-role >/dev/null
refused AccessDenied as "$(get AccessKeyId)" "$(get SecretAccessKey)" "$(get SessionToken)" aws s3 cp "$work/one" s3://other/by-role
refused InvalidToken as "$(get AccessKeyId)" "$(get SecretAccessKey)" "" aws s3 ls s3://base/
refused InvalidToken as "$(get AccessKeyId)" "$(get SecretAccessKey)" wrong aws s3 ls s3://base/
url=$(as "$(get AccessKeyId)" "$(get SecretAccessKey)" "$(get SessionToken)" aws s3 presign s3://base/by-role)
python3 -c 'import sys,urllib.request as u; assert u.urlopen(sys.argv[1]).read() == b"one\n"' "$url"
step "sts assume-role: bound to a world, with its token, also in a presigned URL"

given=$(aws sts get-federation-token --name agent --policy \
    '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:GetObject","Resource":"arn:aws:s3:::base/*"}]}')
as "$(get AccessKeyId)" "$(get SecretAccessKey)" "$(get SessionToken)" aws s3 cp s3://base/top "$work/back" >/dev/null
refused AccessDenied as "$(get AccessKeyId)" "$(get SecretAccessKey)" "$(get SessionToken)" aws s3 cp "$work/one" s3://base/no
step "sts get-federation-token: the policy and the parent together"

aws iam delete-access-key --access-key-id "$id"
refused InvalidAccessKeyId as "$id" "$secret" "" aws s3 ls s3://base/
refused SignatureDoesNotMatch as "$root_id" "not-$root_secret" "" aws iam list-access-keys
step "iam delete-access-key: dead at once"
