import { httpCall } from '../support/http_call';
import { isAdminHost } from '../../server/http/admin_host';
import { startService, type TestService } from '../support/service';

test.each([
  ['127.0.0.1:9090', true],
  ['[::1]:9090', true],
  ['10.0.0.5', true],
  ['localhost:9090', true],
  ['platform-api:9090', true],
  ['platform-api.platform.svc.cluster.local:9090', true],
  ['node1.home.internal', true],
  ['metrics.example.com:9090', true],
  [undefined, true],
  ['attacker.test.evil.com:9090', false],
  ['evil.example', false],
  ['rebind.github.io', false],
  ['127.0.0.1.nip.io:9090', false],
  ['example.com.evil.org', false],
  ['LOCALHOST.evil.com.', false],
])('Host: %s', (host, expected) => {
  expect(isAdminHost(host, 'https://api.example.com')).toBe(expected);
});

describe('the admin port', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.close());

  test.each(['/metrics', '/mail', '/ai/usage-events', '/'])('%s answers to no name of a page', async (path) => {
    const answer = await httpCall(service.adminUrl + path, { method: 'GET', headers: { host: 'rebound.example.com' } });
    expect([answer.status, answer.text]).toEqual([421, expect.stringContaining('local names')]);
    expect((await httpCall(service.adminUrl + path, { method: 'GET', headers: {} })).status).not.toBe(421);
  });
});
