/** @tier heavy @quarter 4 @covers drivers/database/postgresql/failover drivers/database/kubernetes jobs/databases */
// PostgreSQL with automatic failover on three nodes, by CloudNativePG: machines and instances are lost under a client
// that is not ours, whose ledger says what was acknowledged.
import { setTimeout as sleep } from 'node:timers/promises';
import { describeOnTestCluster } from '../cluster/on_cluster';
import { buildOperator, installOperator, OPERATOR_NAMESPACE } from '../cluster/operator';
import { binCalls } from '../support/bin_calls';
import type { DeployService } from '../support/deployments/deploy';
import { databaseCalls } from '../support/kubernetes/database_calls';
import { addDisks, removeDisks } from '../support/kubernetes/database_image';
import { postgresqlClient } from '../support/kubernetes/postgresql_client';
import { debianPostgresql, importPostgresql, programOf } from '../support/kubernetes/postgresql_image';
import { writeRows, type RowLedger } from '../support/kubernetes/row_ledger';
import { startOnCluster } from '../support/kubernetes/service_on_cluster';
import { needs } from '../support/runner/programs';
import { waitFor } from '../support/wait_for';

/* oxlint-disable typescript/no-explicit-any -- answers are whatever the service sends */
const WITHIN_MS = 240_000;
const version = debianPostgresql() ?? '15';
const IMAGE = `test.local/postgresql-${process.pid}:${version}.0`;
const LABEL = 'platform-api/database';
const storageClass = `databases-${process.pid}`;
const PACKAGE = 'ha-1vcpu-1gb';
const BUILD_MS = 30 * 60_000;

/** Of a machine that is cut off: the cluster notices it after 20 s here, 40 s by default. */
const TAKEN_OVER_MS = 180_000;
/** Before something is lost. */
const ROWS = 500;
const ENDING_MS = 5_000;
const API_AWAY_MS = 60_000;

let service: DeployService;
const bin = binCalls(() => service);

needs('initdb', 'psql').describe('with PostgreSQL', () =>
  describeOnTestCluster(
    'PostgreSQL with automatic failover',
    (cluster) => {
      const calls = databaseCalls(() => service, cluster);
      const { run, get, post, wake } = calls;
      const { ask } = postgresqlClient(
        { ...calls, podOf: async (id) => ({ ip: await addressOf(id), uid: '' }) },
        () => service.url,
      );
      beforeAll(async () => {
        await buildOperator();
        await importPostgresql(cluster(), IMAGE, version);
        await addDisks(cluster(), storageClass, { kind: 'shared', count: 10 });
        service = await startOnCluster(cluster(), {
          settings: {
            ...{ KUBERNETES_STORAGE_CLASS: storageClass, RETENTION_OF_DELETED_DAYS: '7' },
            DATABASE_IMAGES: `postgresql:${version}=${IMAGE}`,
          },
        });
      }, BUILD_MS);
      afterAll(async () => {
        await service.close();
        await removeDisks(cluster(), storageClass);
      }, 120_000);

      let id = '';
      const create = (name: string, more: object = {}): Promise<string> =>
        calls.create({ name, engine: 'postgresql', engine_version: version, database_package: PACKAGE, ...more });
      const place = async (id: string): Promise<string[]> => ['-n', await namespaceOf(id)];
      async function namespaceOf(id: string): Promise<string> {
        return (
          await run('get', 'secret', '-A', '-l', `${LABEL}=${id}`, '-o', 'jsonpath={.items[0].metadata.namespace}')
        ).trim();
      }
      /** This machine has no proxy for Services: what the one of the database leads to. */
      async function addressOf(id: string): Promise<string> {
        const slices = ['get', 'endpoints', ...(await place(id)), id.replace('_', '-')];
        return (await run(...slices, '-o', 'jsonpath={.subsets[0].addresses[0].ip}')).trim();
      }
      /** A pod of a lost machine keeps its labels. */
      const primaryOf = async (id: string): Promise<{ name: string; node: string }> => {
        const there = await place(id);
        const status = ['get', 'clusters.postgresql.cnpg.io', ...there, id.replace('_', '-')];
        const name = (await run(...status, '-o', 'jsonpath={.status.currentPrimary}')).trim();
        const node = await run('get', 'pod', ...there, name, '-o', 'jsonpath={.spec.nodeName}').catch(() => '');
        return { name, node: node.trim() };
      };
      const reaches = (id: string, what: (body: any) => boolean, why: string): Promise<any> =>
        waitFor(
          why,
          async () => {
            await wake();
            const body = await get(id);
            return what(body) && body;
          },
          WITHIN_MS,
        );
      /** As the cluster says it, and then the platform. */
      async function healthy(id: string): Promise<void> {
        const columns = ['spec.instances', 'status.readyInstances', 'status.phase'];
        const paths = columns.map((column) => `{.items[*].${column}}`).join(' ');
        const isWhole = async (): Promise<boolean> => {
          const which = [...(await place(id)), '-l', `${LABEL}=${id}`];
          const found = await run('get', 'clusters.postgresql.cnpg.io', ...which, '-o', `jsonpath=${paths}`);
          // Of one node there is none.
          return ['', '3 3 Cluster in healthy state'].includes(found.trim());
        };
        await waitFor('three instances', isWhole, WITHIN_MS);
        const isSettled = ({ status, status_reason }: any): boolean => status === 'available' && status_reason === null;
        await reaches(id, isSettled, 'available');
      }

      test('without the operator the database says what is missing, and goes on once it is there', async () => {
        const { body } = await service.call('GET', '/v2/database_packages?engine=postgresql');
        expect(body.data.find(({ id }: any) => id === PACKAGE)).toMatchObject({ nodes: 3, price_hourly: '0.0600' });
        id = await create('first');
        const told = await reaches(id, ({ status_reason }) => status_reason !== null, 'the reason');
        expect([told.status, told.status_reason]).toEqual([
          'provisioning',
          'The cluster has no CloudNativePG, which makes databases with automatic failover: an operator has to ' +
            'install it, with two commands of docs/KUBERNETES.md. The platform tries again.',
        ]);
        const begun = performance.now();
        await installOperator(cluster());
        console.info(`operator ready after ${seconds(begun)} s`);
        await healthy(id);
        console.info(`three instances after ${seconds(begun)} s`);
        expect(await ask(id, 'show synchronous_commit')).toBe('on');
        const nodes = await run(
          'get',
          'pods',
          ...(await place(id)),
          '-l',
          `${LABEL}=${id}`,
          '-o',
          'jsonpath={.items[*].spec.nodeName}',
        );
        expect(nodes.trim().split(' ').sort()).toEqual(['node1', 'node2', 'node3']);
        await refused();
        await ask(id, 'create table ledger (n int primary key)');
      }, 600_000);

      async function refused(): Promise<void> {
        for (const answer of [
          await post(`${id}/restore`, { backup_id: 'bak_00000000000000000000000000' }),
          await post(`${id}/replicas`, { name: 'more' }),
          await service.call('PATCH', `/v2/databases/${id}`, { body: { database_package: 's-1vcpu-1gb' } }),
        ])
          expect([answer.status, answer.body.code]).toEqual([422, 'engine_feature_unsupported']);
      }

      /** Rows that a client writes on the node of a standby while `lose` is under way; none of them may be missing. */
      async function writing(what: string, lose: (ledger: RowLedger) => Promise<void>): Promise<void> {
        await surely(() => ask(id, 'truncate ledger'));
        const { node } = await primaryOf(id);
        const from = [1, 2, 3].find((number) => `node${number}` !== node) ?? 1;
        const address = await run(
          'get',
          'svc',
          ...(await place(id)),
          id.replace('_', '-'),
          '-o',
          'jsonpath={.spec.clusterIP}',
        );
        const ledger = writeRows({
          ...{ psql: programOf(version, 'psql'), address: address.trim() },
          url: (await get(`${id}/credentials`)).endpoints[0].connection_string,
          authority: await (await fetch(`${service.url}/databases/ca.pem`)).text(),
          processId: await cluster().processOfNode(from),
        });
        try {
          await waitFor('rows', () => Promise.resolve(ledger.acknowledged.length >= ROWS), WITHIN_MS);
          await lose(ledger);
          // What is shutting down still answers for a moment.
          await sleep(ENDING_MS);
          await ledger.untilNext(TAKEN_OVER_MS);
        } finally {
          await ledger.stop();
        }
        const numbers = await surely(() => ask(id, "select coalesce(string_agg(n::text, ','), '') from ledger"));
        const there = new Set(String(numbers).split(',').map(Number));
        const lost = ledger.acknowledged.filter((number) => !there.has(number));
        const gap = (ledger.longestGap() / 1000).toFixed(1);
        console.info(`${what}: ${ledger.acknowledged.length} rows, longest gap ${gap} s, lost ${lost.length}`);
        expect(lost).toEqual([]);
      }
      /** While another primary is chosen, connections are refused. */
      const surely = (work: () => Promise<unknown>): Promise<unknown> =>
        waitFor(
          'an answer',
          async () =>
            work().then(
              (answer) => ({ answer }),
              () => null,
            ),
          WITHIN_MS,
        ).then(({ answer }) => answer);
      const numberOf = (node: string): number => Number(node.replace('node', ''));

      test('a primary whose machine is cut off is replaced without a lost row, and comes back', async () => {
        const before = await primaryOf(id);
        await writing('machine of the primary cut off', async (ledger) => {
          const cut = performance.now();
          await cluster().killNode(numberOf(before.node));
          await waitFor('another primary', async () => (await primaryOf(id)).name !== before.name, TAKEN_OVER_MS);
          await ledger.untilNext(TAKEN_OVER_MS);
          console.info(`writable ${seconds(cut)} s after the cut`);
          expect(
            await reaches(id, ({ status_reason }) => /^2 of 3 instances/.test(status_reason ?? ''), 'two'),
          ).toMatchObject({
            status: 'available',
          });
        });
        await cluster().startNode(numberOf(before.node));
        await healthy(id);
      }, 600_000);

      test('pods of the primary and of a standby are replaced, also while the operator restarts', async () => {
        const before = await primaryOf(id);
        await writing('pod of the primary killed, with the operator', async () => {
          await run('delete', 'pod', ...(await place(id)), before.name, '--grace-period=0', '--force');
          await run('delete', 'pod', '-n', OPERATOR_NAMESPACE, '--all', '--grace-period=0', '--force');
        });
        await healthy(id);
        await writing('a standby that loses its pod and its claim', async () => {
          const { name } = await primaryOf(id);
          const pods = await run('get', 'pods', ...(await place(id)), '-l', 'cnpg.io/podRole=instance', '-o', 'name');
          const standby = pods.split('\n').find((pod) => pod !== '' && pod !== `pod/${name}`) ?? '';
          await run('delete', ...(await place(id)), standby.replace('pod/', 'pvc/'), '--wait=false');
          await run('delete', ...(await place(id)), standby);
        });
        await healthy(id);
        expect(await calls.objects('pvc', id)).toHaveLength(3);
      }, 600_000);

      test('while the API server is away for a minute, writes go on', async () => {
        await writing('API server away', async (ledger) => {
          await cluster().stopApiServer();
          try {
            await sleep(API_AWAY_MS);
            await ledger.untilNext(10_000);
          } finally {
            await cluster().startApiServer();
          }
        });
        await healthy(id);
      }, 300_000);

      test('it is stopped, started, binned and removed, and its backup becomes a database of one node', async () => {
        await ask(id, 'create table kept as select 42 as answer');
        const backup = await calls.backUp(id);
        await post(`${id}/stop`);
        await reaches(id, ({ status }) => status === 'stopped', 'stopped');
        expect(await calls.objects('pods', id)).toEqual([]);
        await post(`${id}/start`);
        await healthy(id);
        expect(await ask(id, 'select answer from kept')).toBe(42);
        const entry = await bin.deleted(`/v2/databases/${id}`);
        await waitFor('no pods', async () => (await calls.objects('pods', id)).length === 0, WITHIN_MS);
        expect(await calls.objects('pvc', id)).toHaveLength(3);
        expect(await bin.restored(entry)).toEqual([]);
        await healthy(id);
        const copy = await calls.create({
          ...{ name: 'copy', engine: 'postgresql', database_package: 's-1vcpu-1gb' },
          restore_from: { database_id: id, backup_id: backup },
        });
        await healthy(copy);
        expect(await ask(copy, 'select answer from kept')).toBe(42);
        expect((await bin.purge(await bin.deleted(`/v2/databases/${id}`))).status).toBe(204);
        const kinds = 'clusters.postgresql.cnpg.io,pods,pvc,svc,secret,networkpolicies';
        await waitFor('nothing', async () => (await calls.objects(kinds, id)).length === 0, WITHIN_MS);
      }, 600_000);
    },
    3,
  ),
);

const seconds = (from: number): string => ((performance.now() - from) / 1000).toFixed(1);
