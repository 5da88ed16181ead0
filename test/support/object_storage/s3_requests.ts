// Requests that every S3 endpoint answers alike. `known`: how the gateway differs, and why that stays.
import { createHash } from 'node:crypto';
import { uriEncodePath } from '../../../core/protocols/sigv4';
import type { Step } from './s3_dialogue';

export type Asked = Step & { known?: string };

const CALLERS = ['writer', 'reader', 'full', 'other', 'wrong', 'unknown', null] as const;
const KEYS = [
  'a',
  'dir/',
  'dir/b',
  'dir/deep/c',
  'ä ö/€',
  'per%cent%2F',
  'plus+and space',
  'quote\'"',
  'z~!*()',
  '&=?#;:@,',
];
const MD5 = (text: string): string => createHash('md5').update(text).digest('base64');

const KEPT_TAGS = '-/Tagging/TagSet= +/Tagging/TagSet/Tag/Key=a +/Tagging/TagSet/Tag/Value=b';

export function dialogue(versioning: boolean): Asked[] {
  return [
    ...rights(),
    ...objects(),
    ...conditions(),
    ...lists(versioning),
    ...uploads(),
    ...deletions(versioning),
    ...odd(),
  ];
}

function rights(): Asked[] {
  return CALLERS.flatMap((as): Asked[] => [
    { method: 'PUT', path: `/rights-${as}`, body: 'x', as },
    { method: 'PUT', path: '/rights', body: 'x' },
    { method: 'GET', path: '/rights', as },
    { method: 'HEAD', path: '/rights', as },
    { method: 'GET', path: '/rights-none', as },
    { method: 'GET', as },
    { method: 'GET', query: { uploads: '' }, as },
    { method: 'GET', path: '/rights', query: { tagging: '' }, as },
    { method: 'DELETE', path: '/rights', as },
  ]);
}

function objects(): Asked[] {
  return KEYS.flatMap((key): Asked[] => {
    const path = `/${uriEncodePath(key)}`;
    const headers = { 'content-type': 'text/plain', 'cache-control': 'no-cache', 'x-amz-meta-color': 'blue' };
    return [
      { method: 'PUT', path, body: `content of ${key}`, headers },
      { method: 'GET', path },
      { method: 'HEAD', path },
      { method: 'GET', path, headers: { range: 'bytes=2-5' } },
      { method: 'GET', path, headers: { range: 'bytes=-3' } },
      { method: 'GET', path, headers: { range: 'bytes=9999-' } },
      { method: 'GET', path, query: { 'response-content-type': 'text/html' } },
      { method: 'PUT', path: `${path}-copy`, headers: { 'x-amz-copy-source': `/BUCKET${path}` } },
      { method: 'GET', path: `${path}-copy` },
    ];
  });
}

function conditions(): Asked[] {
  const etag = `"${createHash('md5').update('one').digest('hex')}"`;
  const past = 'Sat, 01 Jan 2000 00:00:00 GMT';
  return [
    { method: 'PUT', path: '/c', body: 'one' },
    { method: 'GET', path: '/c', headers: { 'if-match': etag } },
    { method: 'GET', path: '/c', headers: { 'if-match': '"other"' } },
    { method: 'GET', path: '/c', headers: { 'if-none-match': etag } },
    { method: 'GET', path: '/c', headers: { 'if-none-match': '"other"' } },
    { method: 'GET', path: '/c', headers: { 'if-modified-since': past } },
    { method: 'GET', path: '/c', headers: { 'if-unmodified-since': past } },
    { method: 'PUT', path: '/c', body: 'two', headers: { 'content-md5': MD5('two') } },
    { method: 'PUT', path: '/c', body: 'two', headers: { 'content-md5': MD5('three') } },
    { method: 'PUT', path: '/c', body: 'two', headers: { 'content-md5': 'nonsense' } },
    { method: 'PUT', path: '/c2', headers: { 'x-amz-copy-source': '/BUCKET/not-there' } },
    { method: 'PUT', path: '/c', headers: { 'x-amz-copy-source': '/BUCKET/c' } },
    { method: 'GET', path: '/not-there' },
    { method: 'HEAD', path: '/not-there' },
  ];
}

function lists(versioning: boolean): Asked[] {
  const made = ['l/1', 'l/2', 'l/d/1', 'l/d/2', 'l/e/1', 'm'].map((key): Asked => ({
    method: 'PUT',
    path: `/${key}`,
    body: key,
  }));
  const queries: Record<string, string>[] = [
    ...[{ prefix: 'l/' }, { prefix: 'l/', delimiter: '/' }, { prefix: 'l/', 'max-keys': '2' }, { prefix: 'none' }],
    ...[{ prefix: 'l/', marker: 'l/2' }, { prefix: 'l/', delimiter: '/', 'max-keys': '1' }, { prefix: 'l/d' }],
    ...[
      { prefix: 'l/', 'max-keys': '0' },
      { prefix: 'l/', 'encoding-type': 'url' },
    ],
  ];
  const v2 = queries.map((query) => ({ ...query, 'list-type': '2' }));
  const more = [
    { 'list-type': '2', prefix: 'l/', 'start-after': 'l/2' },
    { 'list-type': '2', prefix: 'l/', 'fetch-owner': 'true' },
    { 'max-keys': 'nonsense' },
  ] as Record<string, string>[];
  const versions: Record<string, string>[] = versioning
    ? [
        { versions: '', prefix: 'l/' },
        { versions: '', prefix: 'l/', delimiter: '/' },
      ]
    : [];
  return [...made, ...[...queries, ...v2, ...more, ...versions].map((query): Asked => ({ method: 'GET', query }))];
}

function uploads(): Asked[] {
  const save = { upload: /<UploadId>(.*?)<\/UploadId>/ };
  const etagOf = (text: string): string => createHash('md5').update(text).digest('hex');
  const whole = (...parts: [number, string][]): string =>
    `<CompleteMultipartUpload>${parts
      .map(([number, text]) => `<Part><PartNumber>${number}</PartNumber><ETag>"${etagOf(text)}"</ETag></Part>`)
      .join('')}</CompleteMultipartUpload>`;
  const upload = { uploadId: '$upload' };
  const part = (number: number, body: string): Asked => ({
    ...{ method: 'PUT', path: '/u', body },
    query: { ...upload, partNumber: String(number) },
  });
  const large = 'x'.repeat(5 * 2 ** 20);
  return [
    { method: 'POST', path: '/u', query: { uploads: '' }, headers: { 'content-type': 'text/plain' }, save },
    part(1, large),
    part(2, 'last'),
    { method: 'GET', path: '/u', query: upload },
    { method: 'GET', query: { uploads: '', prefix: 'u' } },
    { method: 'GET', path: '/u' },
    { method: 'POST', path: '/u', query: upload, body: whole([1, 'other']) },
    { method: 'POST', path: '/u', query: upload, body: '<nonsense' },
    { method: 'POST', path: '/u', query: upload, body: whole([1, large], [2, 'last']) },
    { method: 'HEAD', path: '/u' },
    { method: 'POST', path: '/u', query: { uploads: '' }, save },
    part(1, 'small'),
    part(2, 'small'),
    { method: 'POST', path: '/u', query: upload, body: whole([1, 'small'], [2, 'small']) },
    { method: 'DELETE', path: '/u', query: upload },
    { method: 'DELETE', path: '/u', query: upload },
    part(1, 'late'),
    { method: 'GET', path: '/u', query: upload, known: 'code NoSuchUpload NoSuchKey' },
    { method: 'PUT', path: '/u', query: { uploadId: 'nonsense', partNumber: '1' }, body: 'x' },
  ];
}

function deletions(versioning: boolean): Asked[] {
  const several = '<Delete><Object><Key>d1</Key></Object><Object><Key>never</Key></Object></Delete>';
  const tags = '<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>';
  return [
    ...['d1', 'd2', 't'].map((key): Asked => ({ method: 'PUT', path: `/${key}`, body: key })),
    { method: 'POST', query: { delete: '' }, body: several, headers: { 'content-md5': MD5(several) } },
    { method: 'GET', path: '/d1' },
    { method: 'DELETE', path: '/d2' },
    { method: 'DELETE', path: '/d2' },
    { method: 'GET', path: '/d2' },
    { method: 'PUT', path: '/t', query: { tagging: '' }, body: tags },
    { method: 'GET', path: '/t', query: { tagging: '' } },
    { method: 'DELETE', path: '/t', query: { tagging: '' } },
    // The gateway forgets to take the tags of a version away.
    { method: 'GET', path: '/t', query: { tagging: '' }, ...(versioning && { known: KEPT_TAGS }) },
    { method: 'PUT', path: '/t', query: { tagging: '' }, body: '<nonsense' },
  ];
}

function odd(): Asked[] {
  return [
    {
      method: 'PUT',
      path: '/o',
      body: 'x',
      headers: { 'x-amz-acl': 'nonsense' },
    },
    // AWS says KeyTooLongError.
    { method: 'PUT', path: `/${'k'.repeat(1025)}`, body: 'x', known: 'code KeyTooLongError InvalidObjectName' },
    { method: 'PUT', path: `/${'k'.repeat(1024)}`, body: 'x' },
    { method: 'GET', path: `/${'k'.repeat(1024)}` },
    { method: 'POST', path: '/o', body: 'x', known: 'status 405 501; code MethodNotAllowed NotImplemented' },
    { method: 'GET', query: { location: '' }, as: 'full' },
    { method: 'GET', query: { versioning: '' }, as: 'full' },
    { method: 'GET', query: { cors: '' }, as: 'full' },
    { method: 'GET', query: { lifecycle: '' }, as: 'full' },
    { method: 'PUT', query: { cors: '' }, body: '<nonsense', as: 'reader' },
    { method: 'DELETE', as: 'writer' },
  ];
}
