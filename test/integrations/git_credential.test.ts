// A credential in the address of a repository.
import { startService, type TestService } from '../support/service';

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service?.close());

test.each([
  'https://ada:secret-token@git.example.com/acme/shop.git',
  'https://secret-token@git.example.com/acme/shop.git',
  'ssh://git:secret-token@git.example.com/acme/shop.git',
])('a credential in the address of a repository is named as the mistake: %s', async (repository_url) => {
  const { status, body, text } = await service.call('POST', '/v2/applications', {
    body: { name: 'shop', source: { type: 'git', repository_url } },
  });
  expect(status).toBe(422);
  expect(body.errors).toEqual([
    {
      field: 'source.repository_url',
      code: 'invalid_format',
      detail: expect.stringMatching(/contains a credential\. Remove the user name and the password/),
    },
  ]);
  expect(text).not.toContain('secret-token');
});

test('what is no address at all is told as before', async () => {
  const { body } = await service.call('POST', '/v2/applications', {
    body: { name: 'shop', source: { type: 'git', repository_url: 'ext::sh -c id' } },
  });
  expect(body.errors[0].detail).toMatch(/must be the address of a Git repository/);
});
