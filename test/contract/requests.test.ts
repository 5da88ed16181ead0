// Requests as nobody should send them: each is refused with a problem document of the right code, none is a 500.
import { gzipSync } from 'node:zlib';
import { type ErrorCode } from '../../core/errors';
import { limits } from '../../core/limits';
import { rawRequest, type RawOptions } from '../support/ingress/raw_http';
import { expectProblem, json, send, service, setUpRequests, volume } from '../support/contract/request_cases';

setUpRequests();

type Case = [string, ErrorCode, string, RawOptions?];

/** Name, expected code, target, rest of the request. */
const bodies: Case[] = [
  ['broken JSON', 'malformed_json', '/v2/volumes', { method: 'POST', headers: json, body: '{"name": "a' }],
  ['a JSON list', 'malformed_json', '/v2/volumes', { method: 'POST', headers: json, body: '[]' }],
  ['JSON null', 'malformed_json', '/v2/volumes', { method: 'POST', headers: json, body: 'null' }],
  ['a JSON text', 'malformed_json', '/v2/volumes', { method: 'POST', headers: json, body: '"{}"' }],
  ['white space only', 'malformed_json', '/v2/volumes', { method: 'POST', headers: json, body: '  ' }],
  ['two objects', 'malformed_json', '/v2/volumes', { method: 'POST', headers: json, body: '{}{}' }],
  [
    'bytes that are no UTF-8',
    'malformed_json',
    '/v2/volumes',
    { method: 'POST', headers: json, body: Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]) },
  ],
  [
    'UTF-16',
    'malformed_json',
    '/v2/volumes',
    { method: 'POST', headers: json, body: Buffer.from('{"name":"a"}', 'utf16le') },
  ],
  [
    'a form',
    'unsupported_media_type',
    '/v2/volumes',
    { method: 'POST', headers: { 'Content-Type': 'application/x-www-form-urlencoded' }, body: 'name=a' },
  ],
  ['a body without a type', 'unsupported_media_type', '/v2/volumes', { method: 'POST', body: '{}' }],
  [
    'a compressed body',
    'unsupported_media_type',
    '/v2/volumes',
    { method: 'POST', headers: { ...json, 'Content-Encoding': 'gzip' }, body: gzipSync('{}') },
  ],
  [
    'a multipart body',
    'unsupported_media_type',
    '/v2/volumes',
    { method: 'POST', headers: { 'Content-Type': 'multipart/form-data; boundary=x' }, body: '--x--' },
  ],
  [
    'a type that only begins like JSON',
    'unsupported_media_type',
    '/v2/volumes',
    { method: 'POST', headers: { 'Content-Type': 'application/jsonp' }, body: '{}' },
  ],
  ['no body where fields are required', 'validation_failed', '/v2/volumes', { method: 'POST' }],
  [
    'NUL in a field',
    'validation_failed',
    '/v2/volumes',
    { method: 'POST', headers: json, body: '{"name": "a\\u0000b", "size_gb": 1}' },
  ],
  [
    'half a surrogate pair in a field',
    'validation_failed',
    '/v2/volumes',
    { method: 'POST', headers: json, body: '{"name": "a\\ud800b", "size_gb": 1}' },
  ],
  [
    'a body of an action that has none',
    'validation_failed',
    '/v2/applications/app_01h455vb4pex5vsknk084sn02q/domains/dom_01h455vb4pex5vsknk084sn02q/verify',
    { method: 'POST', headers: json, body: '{"force": true}' },
  ],
  [
    'a declared size above the limit',
    'payload_too_large',
    '/v2/volumes',
    { method: 'POST', headers: { ...json, 'Content-Length': String(limits.bodyBytesMax + 1) }, body: '{' },
  ],
  [
    'a size above the limit that shows late',
    'payload_too_large',
    '/v2/volumes',
    { method: 'POST', headers: { ...json, 'Transfer-Encoding': 'chunked' }, body: chunked(limits.bodyBytesMax + 1) },
  ],
  [
    'a list as value of __proto__',
    'validation_failed',
    '/v2/volumes',
    {
      method: 'POST',
      headers: json,
      body: '{"__proto__": {"name": "x"}, "constructor": 1, "name": "proto", "size_gb": 1}',
    },
  ],
];

function chunked(bytes: number): string {
  return `${bytes.toString(16)}\r\n${' '.repeat(bytes)}\r\n0\r\n\r\n`;
}

const addresses: Case[] = [
  ['an unknown path', 'route_not_found', '/v2/volums'],
  ['a path above the API', 'route_not_found', '/v2'],
  ['a trailing slash', 'route_not_found', '/v2/volumes/'],
  ['a doubled slash', 'route_not_found', '/v2//volumes'],
  ['upper case', 'route_not_found', '/v2/Volumes'],
  ['an empty parameter', 'route_not_found', '/v2/applications//env'],
  ['dot segments', 'route_not_found', '/v2/errors/../volumes'],
  [
    'the webhook that SOFA would mount',
    'route_not_found',
    '/v2/webhook',
    { method: 'POST', headers: json, body: '{}' },
  ],
  ['a broken percent-encoding in the path', 'malformed_request', '/v2/volumes/%zz'],
  ['a cut percent-encoding in the path', 'malformed_request', '/v2/volumes/%e'],
  ['percent-encoded bytes that are no UTF-8', 'malformed_request', '/v2/volumes/%ff'],
  ['NUL in the path', 'malformed_request', '/v2/volumes/%00'],
  ['a broken percent-encoding in the query', 'malformed_request', '/v2/volumes?name=%zz'],
  ['a broken percent-encoding in a name of the query', 'malformed_request', '/v2/volumes?%zz=1'],
  ['NUL in the query', 'malformed_request', '/v2/volumes?name=%00'],
  ['the same query key twice', 'malformed_request', '/v2/volumes?name=a&name=b'],
  ['an id of another kind', 'not_found', '/v2/volumes/app_01h455vb4pex5vsknk084sn02q'],
  ['an id with a slash in it', 'not_found', '/v2/volumes/vol%2F..%2Fx'],
  ['an id that is a text', 'not_found', "/v2/volumes/'%20or%20'1'='1"],
  ['an id of a thousand characters', 'not_found', `/v2/volumes/${'x'.repeat(1000)}`],
  ['an id in upper case', 'not_found', '/v2/volumes/VOL_01H455VB4PEX5VSKNK084SN02Q'],
  [
    'a key of a variable that is too long',
    'validation_failed',
    `/v2/applications/app_01h455vb4pex5vsknk084sn02q/env/${'K'.repeat(5000)}`,
    { method: 'PUT', headers: json, body: '{"value": ""}' },
  ],
  ['a method that the path does not have', 'method_not_allowed', '/v2/me', { method: 'DELETE' }],
  ['a method that HTTP does not have', 'malformed_request', '/v2/me', { method: 'FETCH' }],
  ['TRACE', 'method_not_allowed', '/v2/me', { method: 'TRACE' }],
  ['a type that the service does not speak', 'not_acceptable', '/v2/volumes', { headers: { Accept: 'text/html' } }],
  [
    'JSON with the weight zero',
    'not_acceptable',
    '/v2/volumes',
    { headers: { Accept: 'application/json;q=0, text/plain' } },
  ],
];

const queries: Case[] = [
  ...['abc', '0', '-1', '1.5', '1e2', '', '%20', '0x10', '9999999999999999', 'true', 'null'].map((limit): Case => [
    `limit=${limit}`,
    'invalid_query_parameter',
    `/v2/volumes?limit=${limit}`,
  ]),
  ['an unknown sort', 'invalid_query_parameter', '/v2/volumes?sort=color'],
  ['a sort with two minus signs', 'invalid_query_parameter', '/v2/volumes?sort=--name'],
  ['an empty sort', 'invalid_query_parameter', '/v2/volumes?sort='],
  ['a sort that is SQL', 'invalid_query_parameter', '/v2/volumes?sort=id;drop%20table%20volumes'],
  ['an unknown value of an enum', 'invalid_query_parameter', '/v2/volumes?status=sleepy'],
  ['a value of an enum in upper case', 'invalid_query_parameter', '/v2/volumes?status=AVAILABLE'],
  ['a number above its bound', 'invalid_query_parameter', '/v2/errors?status=9000'],
  ['a time that is none', 'invalid_query_parameter', '/v2/projects/PROJECT/activity?since=yesterday'],
  ['a truth value that is none', 'invalid_query_parameter', '/v2/regions?available=yes'],
  ['a cursor that is none', 'invalid_cursor', '/v2/volumes?cursor=abc'],
  ['an empty cursor', 'invalid_cursor', '/v2/volumes?cursor='],
  ['a cursor of 10 000 characters', 'invalid_cursor', `/v2/volumes?cursor=${'A'.repeat(10_000)}`],
];

const credentials: Case[] = [
  ['no scheme', 'token_missing', '/v2/me', { headers: { Authorization: 'svc_abc' } }],
  ['another scheme', 'token_missing', '/v2/me', { headers: { Authorization: 'Basic c3ZjOnN2Yw==' } }],
  ['an empty token', 'token_missing', '/v2/me', { headers: { Authorization: 'Bearer ' } }],
  ['two tokens', 'token_missing', '/v2/me', { headers: { Authorization: 'Bearer a b' } }],
  ['a token in the query', 'token_missing', '/v2/me?access_token=svc_1', { headers: { Authorization: '' } }],
  ['bytes beyond ASCII', 'token_missing', '/v2/me', { headers: { Authorization: 'Bearer svc_\xe4' } }],
  [
    'a token of 8 000 characters',
    'token_invalid',
    '/v2/me',
    { headers: { Authorization: `Bearer ${'a'.repeat(8000)}` } },
  ],
  ['a header of 20 000 characters', 'headers_too_large', '/v2/me', { headers: { 'X-Long': 'a'.repeat(20_000) } }],
  ['an address of 20 000 characters', 'headers_too_large', `/v2/volumes/${'a'.repeat(20_000)}`],
  ['a project header that is no id', 'project_not_found', '/v2/volumes', { headers: { 'X-Svc-Project': "' or 1=1" } }],
  [
    'an empty Idempotency-Key',
    'malformed_request',
    '/v2/volumes',
    { method: 'POST', headers: { ...json, 'Idempotency-Key': '' }, body: '{"name": "key", "size_gb": 1}' },
  ],
  [
    'an Idempotency-Key that is too long',
    'malformed_request',
    '/v2/volumes',
    { method: 'POST', headers: { ...json, 'Idempotency-Key': 'k'.repeat(256) }, body: '{"name": "key", "size_gb": 1}' },
  ],
  [
    'an If-Match that names no version',
    'precondition_failed',
    '/v2/volumes/VOLUME',
    { method: 'PATCH', headers: { ...json, 'If-Match': 'W/"1"' }, body: '{"name": "renamed"}' },
  ],
];

describe.each([
  ['bodies', bodies],
  ['addresses', addresses],
  ['queries', queries],
  ['credentials and headers', credentials],
])('%s', (_, cases) => {
  test.each(cases)('%s: %s', async (_name, code, target, options = {}) => {
    await expectProblem(
      await send(target.replace('VOLUME', volume).replace('PROJECT', service.project), options),
      code,
    );
  });
});

describe('bytes that are no request', () => {
  test.each([
    ['nonsense', 'hello\r\n\r\n'],
    ['a header without a colon', 'GET /v2/me HTTP/1.1\r\nHost: a\r\nBroken\r\n\r\n'],
    ['no Host', 'GET /v2/me HTTP/1.1\r\n\r\n'],
    ['two lengths', 'POST /v2/volumes HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}'],
    [
      'a length and chunks',
      'POST /v2/volumes HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['a space in the address', 'GET /v2/errors?x=a b HTTP/1.1\r\nHost: a\r\n\r\n'],
  ])('%s', async (_, bytes) => {
    await expectProblem(await rawRequest(service.url, '', { bytes }), 'malformed_request');
  });
});
