import type { HostFacts } from '../../core/host_facts';
import { engineNotInstalled, aptInstallCommand, missingPrograms } from '../../core/missing_programs';

const found = { version: '1.0', path: '/usr/bin/x' };
const engine = { ...found, series: '1' };
const complete = {
  programs: { bubblewrap: found, git: found, python3: found, go: found, pgbouncer: found, haproxy: found },
  postgresql: [{ ...engine, source: 'system', tools: [] }],
  mariadb: [engine],
  redis: [engine],
  valkey: [],
} as unknown as HostFacts;

test('a complete host lacks nothing, and Valkey stands in for Redis', () => {
  expect(missingPrograms(complete)).toEqual([]);
  expect(missingPrograms({ ...complete, redis: [], valkey: [engine] })).toEqual([]);
  expect(aptInstallCommand([])).toBeNull();
});

test('each missing program says what is worse without it, and one line installs all', () => {
  const { bubblewrap: _, ...programs } = complete.programs;
  const missing = missingPrograms({ ...complete, programs, mariadb: [], redis: [] });
  expect(missing.map(({ name }) => name)).toEqual(['bubblewrap', 'MariaDB', 'Redis']);
  for (const { consequence } of missing) expect(consequence).toMatch(/^[A-Z].* (not|cannot) .*\.$/);
  expect(aptInstallCommand(missing)).toBe('apt-get install bubblewrap mariadb-server redis-server');
});

test('an engine that is not installed says how it comes; another word says nothing', () => {
  expect(engineNotInstalled('valkey')).toContain('`apt-get install valkey-server`');
  expect(engineNotInstalled('oracle')).toBeNull();
  expect(engineNotInstalled('toString')).toBeNull();
});
