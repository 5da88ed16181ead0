// How clients find the authorisation server: RFC 8414, RFC 9728, and what every 401 says.
import { startService, type TestService } from '../../support/service';
import { openClient } from './client';
import { visitor } from '../../support/identity/person';

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());

const json = async (path: string): Promise<Record<string, unknown>> =>
  (await fetch(service.url + path)).json() as Promise<Record<string, unknown>>;

it('describes the server and the resource', async () => {
  const server = await json('/.well-known/oauth-authorization-server');
  expect(server).toMatchObject({
    issuer: service.url,
    authorization_endpoint: `${service.url}/oauth/authorize`,
    token_endpoint: `${service.url}/oauth/token`,
    code_challenge_methods_supported: ['S256'],
    response_types_supported: ['code'],
    token_endpoint_auth_methods_supported: ['none'],
    authorization_response_iss_parameter_supported: true,
  });
  expect(server).not.toHaveProperty('jwks_uri');
  expect(await json('/.well-known/oauth-protected-resource')).toMatchObject({
    resource: service.url,
    authorization_servers: [service.url],
    bearer_methods_supported: ['header'],
  });
  expect((await openClient(service)).server.issuer).toBe(service.url);
});

it('each 401 leads there', async () => {
  const leads = `resource_metadata="${service.url}/.well-known/oauth-protected-resource"`;
  const unknown = `svc_oauth_${'0'.repeat(39)}`;
  const answers = [
    await service.call('GET', '/v2/me', { key: null }),
    await service.call('GET', '/v2/me', { key: unknown }),
    await service.call('GET', '/v2/volumes', { key: await service.mintKey({ expires_at: '2020-01-01T00:00:00Z' }) }),
    await service.graphql('{ getMe { token { id } } }', {}, { key: unknown }),
    await service.graphql('{ viewer { user { id } } }', {}, { key: null }),
    await service.graphql('{ getMe { token { id } } }', {}, { key: null }),
  ];
  for (const { status, headers } of answers) {
    expect(status).toBe(401);
    expect(headers.get('www-authenticate')).toMatch(/^Bearer realm="platform"/);
    expect(headers.get('www-authenticate')).toContain(leads);
  }
  expect(answers[1]?.headers.get('www-authenticate')).toContain('error="invalid_token"');
});

it.each(['fragment', 'form_post', 'jwt', 'web_message', 'nonsense'])('does not answer by %s', async (mode) => {
  const client = await openClient(service);
  const person = visitor(service);
  const refused = await person.open((await client.ask({ response_mode: mode })).url);
  expect(new URL(refused.url).searchParams.get('error')).toBe('unsupported_response_mode');
  expect(new URL(refused.url).hash).toBe('');
  const { url } = await client.ask({ response_mode: 'query' });
  expect((await person.open(url)).title).toBe('Log in');
});
