// The ways to log in that the OpenAPI document names are those of the service.
import type { OpenApiDocument, SecurityScheme } from '../../rest/openapi/document';
import { startService, type TestService } from '../support/service';

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());

it('describes the authorisation server as its metadata do', async () => {
  const document = (await service.call('GET', '/v2/openapi.json', { key: null })).body as OpenApiDocument;
  const { bearer, oauth } = document.components.securitySchemes as Record<string, SecurityScheme>;
  expect(bearer?.type).toBe('http');
  if (oauth?.type !== 'oauth2') throw new Error('no OAuth');
  const metadata = await (await fetch(oauth['x-oauth2MetadataUrl'])).json();
  const { authorizationCode: code, 'x-deviceAuthorization': device } = oauth.flows;
  expect(code.authorizationUrl).toBe(metadata.authorization_endpoint);
  expect(device.deviceAuthorizationUrl).toBe(metadata.device_authorization_endpoint);
  for (const { tokenUrl, refreshUrl, scopes } of [code, device]) {
    expect([tokenUrl, refreshUrl]).toEqual([metadata.token_endpoint, metadata.token_endpoint]);
    expect(metadata.scopes_supported).toEqual(expect.arrayContaining(Object.keys(scopes)));
  }
});
