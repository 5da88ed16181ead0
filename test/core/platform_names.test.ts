import { loadConfig } from '../../core/config';
import { platformNames, platformServiceOf } from '../../core/platform_names';

const TLS = { INGRESS_TLS_PORT: '8443' };

const namesOf = (env: Record<string, string>): string[] =>
  platformNames(loadConfig(env)).map(({ hostname, service }) => `${service} ${hostname}`);

test('the ingress serves the names of the platform that lead to its port with TLS', () => {
  const env = {
    ...TLS,
    BASE_URL: 'https://platform.example.com',
    S3_URL: 'https://S3.example.com:8443/',
    REGISTRY_HOST: 'registry.example.com',
  };
  expect(namesOf(env)).toEqual(['api platform.example.com', 's3 s3.example.com', 'registry registry.example.com']);
  expect(platformServiceOf(loadConfig(env), 's3.example.com')).toBe('s3');
  expect(platformServiceOf(loadConfig(env), 'example.com')).toBeNull();
});

test('an international name is served in its ASCII form', () => {
  expect(namesOf({ ...TLS, BASE_URL: 'https://bücher.example.com' })).toEqual(['api xn--bcher-kva.example.com']);
});

test.each([
  ['without TLS', { BASE_URL: 'https://platform.example.com', INGRESS_TLS_PORT: '' }],
  ['over plain HTTP', { BASE_URL: 'http://platform.example.com' }],
  ['of an address', { BASE_URL: 'https://192.0.2.1' }],
  ['of an IPv6 address', { BASE_URL: 'https://[2001:db8::1]' }],
  ['of this machine', { BASE_URL: 'https://localhost' }],
  ['below localhost', { BASE_URL: 'https://platform.localhost' }],
  ['of one label', { BASE_URL: 'https://platform' }],
  ['at another port', { BASE_URL: 'https://platform.example.com:9443' }],
  ['below a path', { BASE_URL: 'https://example.com/platform' }],
  ['of a registry that has a certificate itself', { REGISTRY_HOST: 'r.example.com', REGISTRY_CERT_FILE: '/cert.pem' }],
  ['of a registry elsewhere', { DISTRIBUTION_URL: 'https://distribution.example.com' }],
  ['of a registry that is off', { REGISTRY_HOST: 'registry.example.com', REGISTRY_PORT: '0' }],
  ['of object storage that is off', { S3_URL: 'https://s3.example.com', S3_PORT: '0' }],
  ['of an object gateway', { S3_URL: 'https://s3.example.com', RGW_URL: 'http://127.0.0.1:7480' }],
])('it does not serve a name %s', (_, env) => {
  expect(namesOf({ ...TLS, ...env })).toEqual([]);
});

test('a name belongs to one service, the API before the others', () => {
  const env = { ...TLS, BASE_URL: 'https://example.com', S3_URL: 'https://example.com:8443' };
  expect(namesOf(env)).toEqual(['api example.com']);
});
