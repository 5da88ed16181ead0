// What the ingress counts and logs.
import { LATENCY_BOUNDS_MS } from '../../../engines/ingress/ingress';
import { ask, closeAll, openFront, routeOf, startApp } from '../../support/ingress/ingress';

afterEach(closeAll);

const ok = () => startApp((_, response) => response.end('ok'));

describe('traffic and access lines', () => {
  test('a line per request, without the query', async () => {
    const front = await openFront([routeOf([await ok()], { preview_id: 'prv_1' })]);
    await ask(front, { host: 'App.example.com:81', path: '/a/b?token=secret' });
    await ask(front, { path: `/${'x'.repeat(5_000)}` });
    expect(front.lines).toMatchObject([
      {
        application_id: 'app_1',
        preview_id: 'prv_1',
        method: 'GET',
        host: 'app.example.com',
        path: '/a/b',
        status: 200,
        bytes_sent: 2,
        client_address: '127.0.0.1',
        reason: null,
      },
      { status: 200 },
    ]);
    expect(front.lines[0]?.instance_id).toMatch(/^ins_/);
    expect(front.lines[0]?.at).toBeInstanceOf(Date);
    expect(front.lines[1]?.path).toHaveLength(2_048);
    expect(JSON.stringify(front.lines)).not.toContain('secret');
  });

  test('counters per instance, and for what the ingress answers itself', async () => {
    const app = await startApp(
      (request, response) =>
        void request.resume().on('end', () =>
          setTimeout(() => {
            response.statusCode = Number(request.url?.slice(1));
            response.end('12345');
          }, 30),
        ),
    );
    const front = await openFront([routeOf([app]), routeOf([], { preview_id: 'prv_1', hosts: ['pr.example.com'] })]);
    for (const status of [200, 201, 302, 404, 500])
      await ask(front, { path: `/${status}`, method: 'POST', body: 'abc' });
    await ask(front, { host: 'pr.example.com' });
    const [own, none] = front.ingress.takeTraffic();
    expect(own).toMatchObject({
      application_id: 'app_1',
      preview_id: null,
      instance_id: app.instance_id,
      requests: 5,
      responses: { '2xx': 2, '3xx': 1, '4xx': 1, '5xx': 1 },
      received_bytes: 15,
      sent_bytes: 25,
    });
    expect(own?.latency).toHaveLength(LATENCY_BOUNDS_MS.length + 1);
    expect(own?.latency.slice(0, 4)).toEqual([0, 0, 0, 0]);
    expect(own?.latency.reduce((sum, count) => sum + count)).toBe(5);
    expect(none).toMatchObject({ preview_id: 'prv_1', instance_id: null, requests: 1, responses: { '5xx': 1 } });
    expect(front.ingress.takeTraffic()).toEqual([]);
  });
});
