// The Tigris SDK, storagesdk's adapter and the AWS SDK for JavaScript against a running server, verb by verb, bytes compared.
// The server is named by the variables of `mw env`.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import {
  CompleteMultipartUploadCommand, CopyObjectCommand, CreateBucketCommand, CreateMultipartUploadCommand, DeleteBucketCommand, DeleteObjectCommand,
  DeleteObjectsCommand, GetObjectCommand, HeadObjectCommand, ListBucketsCommand, ListObjectsV2Command, PutObjectCommand, S3Client, UploadPartCommand,
} from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { Storage } from '@storagesdk/core';
import { tigris } from '@storagesdk/adapters/tigris';
import * as sdk from '@tigrisdata/storage';

const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey, AWS_ENDPOINT_URL_S3: endpoint } = process.env;
const step = (what) => console.log(`  ${what}`);
const odd = ['a b', '100%+x', 'ü/ñ/日本', "it's(1)!*~", 'q?x=1#y', 'a&b=c;d', '=eq', '~x'];

async function aws() {
  const s3 = new S3Client({ endpoint, region: 'auto', forcePathStyle: true, credentials: { accessKeyId, secretAccessKey } });
  const Bucket = 'js-aws';
  const bytes = async (answer) => Buffer.from(await answer.Body.transformToByteArray());
  const get = async (Key, more) => bytes(await s3.send(new GetObjectCommand({ Bucket, Key, ...more })));
  await s3.send(new CreateBucketCommand({ Bucket, CreateBucketConfiguration: { LocationConstraint: 'auto' } }));
  assert((await s3.send(new ListBucketsCommand({}))).Buckets.some((b) => b.Name === Bucket));
  step('objects');
  const body = randomBytes(2_000_003);
  for (const Key of odd) {
    await s3.send(new PutObjectCommand({ Bucket, Key, Body: body, ContentType: 'a/b', Metadata: { m: '1' } }));
    assert((await get(Key)).equals(body), Key);
    await s3.send(new CopyObjectCommand({ Bucket, Key: `copy/${Key}`, CopySource: `${Bucket}/${encodeURIComponent(Key)}` }));
    const head = await s3.send(new HeadObjectCommand({ Bucket, Key: `copy/${Key}` }));
    assert.equal(head.ContentLength, body.length);
    assert.deepEqual([head.ContentType, head.Metadata], ['a/b', { m: '1' }]);
  }
  assert((await get(odd[0], { Range: 'bytes=5-9' })).equals(body.subarray(5, 10)));
  await assert.rejects(get('none'), (e) => e.name === 'NoSuchKey' && e.$metadata.httpStatusCode === 404);
  await assert.rejects(
    s3.send(new PutObjectCommand({ Bucket, Key: odd[0], Body: 'x', IfNoneMatch: '*' })),
    (e) => e.name === 'PreconditionFailed',
  );
  step('multipart');
  const Key = 'big';
  const { UploadId } = await s3.send(new CreateMultipartUploadCommand({ Bucket, Key }));
  const pieces = [randomBytes(5 << 20), randomBytes(5 << 20), randomBytes(77)];
  const part = async (Body, n) => {
    const { ETag } = await s3.send(new UploadPartCommand({ Bucket, Key, UploadId, PartNumber: n + 1, Body }));
    return { ETag, PartNumber: n + 1 };
  };
  const Parts = await Promise.all(pieces.map(part));
  await s3.send(new CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload: { Parts } }));
  assert((await get(Key)).equals(Buffer.concat(pieces)));
  step('presigned URLs, with the checksum of nothing in the query');
  const url = await getSignedUrl(s3, new PutObjectCommand({ Bucket, Key: 'by url' }), { expiresIn: 60 });
  assert.equal((await fetch(url, { method: 'PUT', body: 'by url' })).status, 200);
  const back = await fetch(await getSignedUrl(s3, new GetObjectCommand({ Bucket, Key: 'by url' }), { expiresIn: 60 }));
  assert.equal(await back.text(), 'by url');
  step('listing and deletes');
  const keys = [];
  let ContinuationToken;
  do {
    const page = await s3.send(new ListObjectsV2Command({ Bucket, MaxKeys: 3, ContinuationToken }));
    keys.push(...page.Contents.map((o) => o.Key));
    ContinuationToken = page.NextContinuationToken;
  } while (ContinuationToken);
  const want = [...odd, ...odd.map((k) => `copy/${k}`), 'big', 'by url'];
  assert.deepEqual(keys, want.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))));
  await s3.send(new DeleteObjectCommand({ Bucket, Key: keys[0] }));
  const gone = await s3.send(new DeleteObjectsCommand({ Bucket, Delete: { Objects: keys.map((Key) => ({ Key })) } }));
  assert.equal(gone.Deleted.length, keys.length);
  await s3.send(new DeleteBucketCommand({ Bucket }));
}

async function storage() {
  const base = { endpoint, accessKeyId, secretAccessKey, forcePathStyle: true };
  const config = { ...base, bucket: 'js-tigris' };
  const ok = async (promise) => {
    const { data, error } = await promise;
    if (error) throw error;
    return data;
  };
  const read = async (path, more = {}) => ok(sdk.get(path, 'string', { config, ...more }));
  step('buckets');
  await ok(sdk.createBucket('js-tigris', { enableSnapshot: true, config: base }));
  const info = await ok(sdk.getBucketInfo('js-tigris', { config: base }));
  assert.equal(info.isSnapshotEnabled, true);
  const { buckets } = await ok(sdk.listBuckets({ config: base }));
  assert(buckets.some((b) => b.name === 'js-tigris'));
  const again = await sdk.createBucket('js-tigris', { config: base });
  assert.match(again.error.message, /already exists/);
  step('objects');
  for (const key of odd) {
    await ok(sdk.put(key, `content of ${key}`, { config, contentType: 'text/x' }));
    assert.equal(await read(key), `content of ${key}`);
  }
  await ok(sdk.put('big', randomBytes(11 << 20), { config, multipart: true }));
  assert.equal((await ok(sdk.head('big', { config }))).size, 11 << 20);
  assert.equal((await sdk.head('none', { config })).data, undefined);
  await ok(sdk.copy(odd[0], 'copied', { config }));
  assert.equal((await ok(sdk.head('copied', { config }))).contentType, 'text/x', 'JSON noise is not its type');
  await ok(sdk.move(odd[1], 'moved', { config }));
  assert.equal(await read('moved'), `content of ${odd[1]}`);
  assert((await sdk.get(odd[1], 'string', { config })).error, 'nothing stays behind');
  const listed = await ok(sdk.list({ config, limit: 4 }));
  assert.equal(listed.items.length, 4);
  step('presign and upload URLs');
  const got = await ok(sdk.getPresignedUrl('moved', { operation: 'get', config, expiresIn: 60 }));
  assert.equal(await (await fetch(got.url)).text(), `content of ${odd[1]}`);
  const sent = await ok(sdk.getPresignedUrl('sent', { operation: 'put', config }));
  assert.equal((await fetch(sent.url, { method: 'PUT', body: 'sent' })).status, 200);
  const upload = await ok(sdk.getSignedUploadUrl('uploaded', { config, expiresIn: 60 }));
  assert.equal((await fetch(upload.url, { method: 'PUT', body: 'uploaded' })).status, 200);
  assert.deepEqual([await read('sent'), await read('uploaded')], ['sent', 'uploaded']);
  step('snapshots');
  const { snapshotVersion } = await ok(sdk.createBucketSnapshot('js-tigris', { name: 'one; two', config: base }));
  await ok(sdk.put('moved', 'changed', { config }));
  assert.equal(await read('moved', { snapshotVersion }), `content of ${odd[1]}`);
  const then = await ok(sdk.getPresignedUrl('moved', { operation: 'get', config, snapshotVersion }));
  assert.equal(await (await fetch(then.url)).text(), `content of ${odd[1]}`);
  const { versions, deleteMarkers } = await ok(sdk.listVersions({ config, prefix: odd[1] }));
  assert.deepEqual([versions.length, deleteMarkers.length], [1, 1], 'a rename leaves the version and a marker');
  const { snapshots } = await ok(sdk.listBucketSnapshots('js-tigris', { config: base }));
  assert.deepEqual([snapshots[0].version, snapshots[0].name], [snapshotVersion, 'one; two']);
  const old = await ok(sdk.list({ config, snapshotVersion, prefix: 'mov' }));
  assert.deepEqual(old.items.map((o) => [o.name, o.size]), [['moved', Buffer.byteLength(`content of ${odd[1]}`)]]);
  step('bundle');
  const bundle = await ok(sdk.bundle(['moved', 'none', 'sent'], { config }));
  const archive = Buffer.from(await new Response(bundle.body).arrayBuffer());
  assert(archive.includes('changed') && archive.includes('__bundle_errors.json'));
  step('forks, merge, rebase');
  await ok(sdk.createBucket('js-fork', { sourceBucketName: 'js-tigris', sourceBucketSnapshot: snapshotVersion, config: base }));
  const forked = { ...config, bucket: 'js-fork' };
  assert.equal(await read('moved', { config: forked }), `content of ${odd[1]}`);
  const { forks } = await ok(sdk.listForks('js-tigris', { config: base }));
  assert.deepEqual(forks.map((f) => [f.name, f.snapshot]), [['js-fork', snapshotVersion]]);
  await ok(sdk.put('from the fork', 'f', { config: forked }));
  const merged = await ok(sdk.mergeFork('js-fork', 'js-tigris', { config: base }));
  assert.match(merged.snapshotVersion, /^\d{19}$/);
  assert.equal(await read('from the fork'), 'f');
  const rebased = await ok(sdk.rebaseFork('js-fork', { config: base }));
  assert.match(rebased.snapshotVersion, /^\d{19}$/);
  assert.equal(await read('moved', { config: forked }), 'changed');
  await ok(sdk.put('moved', 'ours', { config }));
  await ok(sdk.put('moved', 'theirs', { config: forked }));
  const refused = await sdk.mergeFork('js-fork', 'js-tigris', { config: base });
  assert.match(refused.error.message, /conflict.*moved/s);
  assert.equal(await read('moved'), 'ours');
  step('settings and ends');
  assert.match((await sdk.mergeFork('js-tigris', 'js-fork', { config: base })).error.message, /not a fork/);
  await ok(sdk.deleteBucketSnapshot('js-tigris', snapshotVersion, { config: base }));
  await ok(sdk.disableSnapshot('js-fork', { config: base }));
  assert.equal((await ok(sdk.getBucketInfo('js-fork', { config: base }))).isSnapshotEnabled, false);
  await ok(sdk.enableSnapshot('js-fork', { config: base }));
  await ok(sdk.removeBucket('js-fork', { force: true, config: base }));
  assert((await sdk.removeBucket('js-tigris', { config: base })).error, 'it is not empty');
  await ok(sdk.removeBucket('js-tigris', { force: true, config: base }));
  assert.match((await sdk.list({ config })).error.message, /NoSuchBucket/);
}

/** The sequence of storagesdk's own MCP server, tool by tool, over its adapter. */
async function adapter() {
  const base = { endpoint, accessKeyId, secretAccessKey, forcePathStyle: true };
  await sdk.createBucket('js-sdk', { enableSnapshot: true, config: base });
  const store = new Storage({ adapter: tigris({ ...base, bucket: 'js-sdk' }) });
  const text = (item) => new TextDecoder().decode(item.body);
  const rejects = (promise, code) => assert.rejects(promise, (e) => e.code === code);
  step('upload, head, download, list, copy, move, delete');
  await store.upload('a/one.txt', 'one', { contentType: 'text/plain', metadata: { k: 'v' } });
  const head = await store.head('a/one.txt');
  assert.deepEqual([head.size, head.contentType, head.metadata], [3, 'text/plain', { k: 'v' }]);
  assert.equal(text(await store.download('a/one.txt')), 'one');
  assert.equal(text(await store.download('a/one.txt', { range: { offset: 1, length: 2 } })), 'ne');
  await rejects(store.head('none'), 'NotFound');
  await rejects(store.download('none'), 'NotFound');
  await store.copy('a/one.txt', 'a/two.txt');
  await store.move('a/two.txt', 'b/three.txt');
  await rejects(store.head('a/two.txt'), 'NotFound');
  assert.deepEqual((await store.list({ prefix: 'b/' })).items.map((i) => i.path), ['b/three.txt']);
  await store.delete('b/three.txt');
  step('url and upload url');
  assert.equal(await (await fetch(await store.url('a/one.txt'))).text(), 'one');
  const place = await store.uploadUrl('up', { expiresIn: 60 });
  assert.equal((await fetch(place.url, { method: place.method, body: 'up' })).status, 200);
  assert.equal(text(await store.download('up')), 'up');
  const form = await store.uploadUrl('by form', { expiresIn: 60, maxSize: 100 });
  const post = (body) => {
    const data = new FormData();
    for (const [name, value] of Object.entries(form.fields)) data.append(name, value);
    data.append('file', new Blob([body]));
    return fetch(form.url, { method: form.method, body: data });
  };
  assert((await post('a form')).ok);
  assert.equal(text(await store.download('by form')), 'a form');
  // Refused before it is read, so that the connection may end before the answer was.
  assert(!(await post('x'.repeat(101)).then((answer) => answer.ok, () => false)), 'the policy holds');
  assert.equal(text(await store.download('by form')), 'a form');
  step('snapshots');
  const snapshot = await store.snapshots.create({ name: 'v1' });
  await store.upload('a/one.txt', 'changed');
  assert.equal(text(await store.snapshots.get(snapshot.id).download('a/one.txt')), 'one');
  assert.equal((await store.snapshots.head(snapshot.id)).name, 'v1');
  assert.deepEqual((await store.snapshots.list()).map((s) => s.id), [snapshot.id]);
  step('forks');
  const fork = await store.forks.create({ name: 'js-sdk-fork', fromSnapshot: snapshot.id });
  assert.equal(fork.name, 'js-sdk-fork');
  await rejects(store.forks.create({ name: 'js-sdk-fork' }), 'Conflict');
  assert.deepEqual((await store.forks.list()).map((f) => [f.name, f.fromSnapshot]), [['js-sdk-fork', snapshot.id]]);
  const inside = store.forks.get('js-sdk-fork');
  assert.equal(text(await inside.download('a/one.txt')), 'one');
  await inside.upload('a/new.txt', 'new');
  await store.forks.merge('js-sdk-fork');
  assert.equal(text(await store.download('a/new.txt')), 'new');
  await store.forks.rebase('js-sdk-fork');
  assert.equal(text(await inside.download('a/one.txt')), 'changed');
  await store.forks.delete('js-sdk-fork');
  await rejects(store.forks.head('js-sdk-fork'), 'NotFound');
  await store.snapshots.delete(snapshot.id);
  assert.deepEqual(await store.snapshots.list().then((all) => all.filter((s) => s.id === snapshot.id)), []);
  assert.equal(text(await store.download('a/one.txt')), 'changed', 'deleting a snapshot leaves the bucket');
  await sdk.removeBucket('js-sdk', { force: true, config: base });
}

for (const [name, run] of [['@aws-sdk/client-s3', aws], ['@tigrisdata/storage', storage], ['@storagesdk/adapters', adapter]]) {
  console.log(name);
  await run();
}
