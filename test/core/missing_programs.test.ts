import { engineDefinitions } from '../../core/catalog/catalog_definitions/databases';
import {
  engineNotInstalled,
  aptInstallCommand,
  missingPrograms,
  optionalPrograms,
} from '../../core/catalog/missing_programs';

const packagesOf = (names: string[], isRoot = true) =>
  missingPrograms({ missing_programs: names }, isRoot).map((one) => one.package);

test('a complete host lacks nothing, and Valkey stands in for Redis', () => {
  expect(packagesOf([])).toEqual([]);
  expect(packagesOf(['redis-server'])).toEqual([]);
  expect(packagesOf(['redis-server', 'valkey-server'])).toEqual(['redis-server']);
  expect(aptInstallCommand([])).toBeNull();
});

test('each missing program says what is worse without it, and one line installs all', () => {
  const all = optionalPrograms.flatMap(({ programs }) => programs);
  const missing = missingPrograms({ missing_programs: all }, false);
  for (const { consequence } of missing) expect(consequence).toMatch(/^[A-Z].*\.$/);
  expect(aptInstallCommand(missingPrograms({ missing_programs: ['bwrap', 'mariadbd'] }, true))).toBe(
    'apt-get install bubblewrap mariadb-server',
  );
});

test('programs that only root or only an ordinary user needs are missed by those alone', () => {
  expect(packagesOf(['pasta'], true)).toEqual([]);
  expect(packagesOf(['pasta'], false)).toEqual(['passt']);
  expect(packagesOf(['mkfs.ext4'], true)).toEqual(['e2fsprogs']);
  expect(packagesOf(['mkfs.ext4'], false)).toEqual([]);
});

test('programs that only tests use are not missed', () => {
  expect(packagesOf(['dig', 'curl', 'chromium'])).toEqual([]);
  for (const entry of optionalPrograms) expect('without' in entry).not.toBe('tests' in entry);
});

test('an engine that is not installed says how it comes; another word says nothing', () => {
  for (const { id } of engineDefinitions) expect(engineNotInstalled(id)).toContain('`apt-get install ');
  expect(engineNotInstalled('valkey')).toContain('`apt-get install valkey-server`');
  expect(engineNotInstalled('oracle')).toBeNull();
  expect(engineNotInstalled('toString')).toBeNull();
});
