import { loadConfig } from '../../core/config';
import { missingDomain } from '../../core/catalog/missing_domain';
import { sharedSiteWarning } from '../../server/platform/shared_site';

const warning = (BASE_URL: string, APPS_DOMAIN: string): string | null =>
  sharedSiteWarning(loadConfig({ BASE_URL, APPS_DOMAIN }));

test.each([
  ['https://api.example.com', 'apps.example.com', 'example.com'],
  ['https://api.example.com', 'example.com', 'example.com'],
  ['https://example.com', 'example.com', 'example.com'],
  ['https://example.com:8443', 'apps.example.com', 'example.com'],
  ['https://dashboard.apps.example.co.uk', 'apps.example.co.uk', 'example.co.uk'],
  ['http://platform.home.internal', 'apps.home.internal', 'home.internal'],
])('%s and applications below %s share the cookies of %s', (base, apps, shared) => {
  expect(warning(base, apps)).toContain(`share the domain ${shared}.`);
});

test.each([
  ['https://api.example.com', 'apps.example.net'],
  ['https://api.example.co.uk', 'other.co.uk'],
  // Public suffixes: of a provider in the private part of the list, and of a country.
  ['https://dashboard.github.io', 'github.io'],
  ['https://api.example.com', 'example.github.io'],
  ['http://127.0.0.1:8080', 'localhost'],
  ['http://localhost:8080', 'localhost'],
  ['http://[::1]:8080', 'localhost'],
  ['https://192.0.2.1', 'apps.example.com'],
])('%s and applications below %s share none', (base, apps) => {
  expect(warning(base, apps)).toBeNull();
});

test('an installation without a domain is told the next step, and none with one of its own', () => {
  expect(missingDomain(loadConfig({}))).toMatch(/^No domain yet: .* Next: \S.* setup --domain example\.com$/);
  expect(missingDomain(loadConfig({ BASE_URL: 'https://platform.example.com' }))).toBeNull();
  expect(missingDomain(loadConfig({ APPS_DOMAIN: 'apps.example.com' }))).toBeNull();
});
