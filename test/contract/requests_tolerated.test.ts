// Requests with several mistakes, and unusual ones that are none.
import { connect } from 'node:net';
import { rawRequest } from '../support/ingress/raw_http';
import { expectProblem, json, send, service, setUpRequests, volume } from '../support/contract/request_cases';

setUpRequests();

describe('several mistakes at once', () => {
  it('come together with their paths and codes', async () => {
    const { status, body } = await service.call('POST', '/v2/volumes', {
      body: { name: 'Not A Slug', size_gb: '5', mount_path: '/data', id: 'vol_1', color: 'red', region: null },
    });
    expect([status, body.code]).toEqual([422, 'validation_failed']);
    const found = body.errors.map((entry: { field: string; code: string }) => `${entry.field} ${entry.code}`);
    expect(found.sort()).toEqual([
      'color unknown_field',
      'id immutable',
      'mount_path depends_on',
      'name invalid_format',
      'region required',
      'size_gb invalid_type',
    ]);
    for (const entry of body.errors) expect(Object.keys(entry)).toEqual(['field', 'code', 'detail']);
  });

  it('no type is bent to fit', async () => {
    for (const size_gb of ['5', true, 1.5, [5], {}, 1e99, 2 ** 31]) {
      const { status, body } = await service.call('POST', '/v2/volumes', { body: { name: 'types', size_gb } });
      expect([size_gb, status, body.errors?.[0]]).toMatchObject([
        size_gb,
        422,
        { field: 'size_gb', code: 'invalid_type' },
      ]);
    }
  });

  it('the path of a field inside an object has dots', async () => {
    const { body } = await service.call('POST', '/v2/applications', {
      body: { name: 'shop', source: { type: 'git', repository_url: 5, color: 1 } },
    });
    expect(body.errors.map((entry: { field: string; code: string }) => [entry.field, entry.code])).toEqual(
      expect.arrayContaining([
        ['source.color', 'unknown_field'],
        ['source.repository_url', 'invalid_type'],
      ]),
    );
  });
});

describe('what is tolerated', () => {
  it('HEAD answers like GET without the body', async () => {
    for (const [target, options] of [
      ['/v2/volumes', {}],
      [`/v2/volumes/${volume}`, {}],
      ['/v2/errors', { headers: { Authorization: '' } }],
    ] as const) {
      const [head, get] = [await send(target, { ...options, method: 'HEAD' }), await send(target, options)];
      expect([head.status, head.body, head.headers['content-length'], head.headers.etag]).toEqual([
        200,
        '',
        get.headers['content-length'],
        get.headers.etag,
      ]);
    }
    const missing = await send('/v2/volumes/x', { method: 'HEAD' });
    expect([missing.status, missing.body, missing.headers['content-type']]).toEqual([
      404,
      '',
      'application/problem+json',
    ]);
  });

  it('OPTIONS names the methods, without a key', async () => {
    const answer = await rawRequest(service.url, `/v2/volumes/${volume}`, { method: 'OPTIONS' });
    expect([answer.status, answer.body, answer.headers.allow]).toEqual([204, '', 'GET, PATCH, DELETE, HEAD, OPTIONS']);
    await expectProblem(await rawRequest(service.url, '/v2/nowhere', { method: 'OPTIONS' }), 'route_not_found');
  });

  it('405 names the methods', async () => {
    expect((await send('/v2/me', { method: 'DELETE' })).headers.allow).toBe('GET, HEAD, OPTIONS');
    expect((await send('/v2/volumes', { method: 'PUT', headers: json, body: '{}' })).headers.allow).toBe(
      'GET, POST, HEAD, OPTIONS',
    );
  });

  it('a limit above 100 is 100, unknown query parameters are ignored', async () => {
    for (const query of [
      'limit=101',
      'limit=100000',
      'limit=99999999999',
      'color=red',
      'color=red&&flag',
      'limit=1&Limit=abc',
    ])
      expect([query, (await send(`/v2/volumes?${query}`)).status]).toEqual([query, 200]);
    const { json: page } = await send('/v2/errors?limit=1000');
    expect(page).toMatchObject({ next_cursor: null });
  });

  it('an action without a body takes an empty one, and JSON may have parameters', async () => {
    const verify = '/v2/applications/app_01h455vb4pex5vsknk084sn02q/domains/dom_01h455vb4pex5vsknk084sn02q/verify';
    for (const options of [{}, { headers: json }, { headers: json, body: '{}' }])
      await expectProblem(await send(verify, { method: 'POST', ...options }), 'not_found');
    for (const type of ['application/json; charset=utf-8', 'Application/JSON', 'application/merge-patch+json']) {
      const answer = await send(`/v2/volumes/${volume}`, {
        method: 'PATCH',
        headers: { 'Content-Type': type },
        body: '{"name": "uploads"}',
      });
      expect([type, answer.status]).toEqual([type, 200]);
    }
  });

  it('Accept may name JSON in any way', async () => {
    for (const accept of [
      '*/*',
      'application/*',
      'application/json',
      'text/html, application/json;q=0.5',
      'application/problem+json, application/json',
      'application/json; charset=utf-8',
      'text/html, application/json;version=2;q=0.5',
    ]) {
      expect([accept, (await send('/v2/volumes', { headers: { Accept: accept } })).status]).toEqual([accept, 200]);
    }
  });

  it('the scheme of a token in any case', async () => {
    expect((await send('/v2/me', { headers: { Authorization: `bearer ${service.key}` } })).status).toBe(200);
  });
});

test('half a request is given up and the server goes on', async () => {
  const { port } = new URL(service.url);
  const socket = connect(Number(port), '127.0.0.1');
  socket.on('error', () => {});
  socket.write(
    `POST /v2/volumes HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${service.key}\r\n` +
      `X-Svc-Project: ${service.project}\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n` +
      '{"name": "half',
  );
  await new Promise((resolve) => setTimeout(resolve, 50));
  socket.destroy();
  expect((await send('/v2/volumes?name=half')).json).toMatchObject({ data: [] });
});
