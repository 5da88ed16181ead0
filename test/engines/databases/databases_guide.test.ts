/** @tier heavy @quarter 4 @covers docs/DATABASES.md jobs/databases/database */
// docs/DATABASES.md is true: its blocks run as they stand against what npm start starts.
import { openDatabaseWorkshop, type DatabaseWorkshop } from '../../support/databases/database_hall';
import { processesWith, signalAll } from '../../support/processes/processes';
import { needs } from '../../support/runner/programs';
import { startTour, type Tour } from '../../support/processes/tour';

const PROGRAMS = [
  'curl',
  'psql',
  'pg_restore',
  'pg_basebackup',
  'redis-server',
  'redis-cli',
  'mariadbd',
  'mariadb',
  'mariadb-dump',
  'pgbouncer',
  'haproxy',
];

describe('the guide to databases', () => {
  const { test: tour } = needs('bash', ...PROGRAMS);
  let service: Tour | undefined;
  let place: DatabaseWorkshop | undefined;

  afterAll(async () => {
    await service?.close();
    // Servers outlive the service.
    if (service) signalAll(processesWith(`${service.dataDir}/databases`).map(({ pid }) => pid));
    place?.clear();
  }, 60_000);

  tour(
    `runs as it stands (needs bash, ${PROGRAMS.join(', ')})`,
    async () => {
      place = openDatabaseWorkshop();
      service = await startTour(place.settings);
      const outputs = await service.run('docs/DATABASES.md');
      const [
        ,
        offer,
        created,
        written,
        verified,
        others,
        attached,
        users,
        extension,
        endpoint,
        pooled,
        backup,
        proof,
        copy,
        moment,
        replica,
        promoted,
        changed,
        told,
        deleted,
        cleared,
      ] = outputs;
      expect(outputs).toHaveLength(21);
      expect(offer).toMatch(/postgresql .*\d+[^]*redis \d[^]*dev-1vcpu-256mb 256 20 10\n[^]*\n[1-9]\d*\n$/);
      expect(created).toBe('available\n');
      expect(written).toBe('2\n');
      expect(verified).toBe('verified|t\n');
      expect(others).toBe('OK\nhello\n');
      expect(attached).toContain(
        'DATABASE_HOST DATABASE_NAME DATABASE_PASSWORD DATABASE_PORT DATABASE_URL DATABASE_USER',
      );
      expect(users).toBe('2\nERROR:  permission denied for table notes\npassword authentication failed\n2\n');
      expect(extension).toBe('earthdistance\n');
      expect(endpoint).toBe('active\n');
      expect(pooled).toBe('active\n2\n');
      expect(backup).toBe('completed\n1\n');
      expect(proof).toMatch(/^[1-9]\d*\n$/);
      expect(copy).toBe('2\n');
      expect(moment).toBe('14\navailable\n3\n');
      expect(replica).toMatch(/^active\n3\nERROR: {2}cannot execute DELETE in a read-only transaction\n$/);
      expect(promoted).toBe('4\n');
      expect(changed).toBe('2\nstopped\navailable\nhello\n');
      expect(told).toMatch(/no_such_column[^]*\n.*connections.*storage_used_bytes/);
      expect(deleted).toBe('true\ndeletion_protected\nfalse\nresource_in_use\nHTTP status 204\nHTTP status 204\n');
      expect(cleared).toMatch(/HTTP status 204/);
    },
    300_000,
  );
});
