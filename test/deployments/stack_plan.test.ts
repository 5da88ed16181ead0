import { planStack, planWorkloads } from '../../jobs/applications/application/stack_plan';
import { isCrashed, restartDelayMs, appendExit } from '../../jobs/restart_backoff';
import type { PresentInstance, DesiredProcess } from '../../models/applications/stack';

const desired = (values: Partial<DesiredProcess> = {}): DesiredProcess => ({
  process_id: 'prc_web',
  type: 'web',
  release_id: 'rel_2',
  deployment_id: 'dep_2',
  on_cluster: false,
  instances: 2,
  ...values,
});
const present = (id: string, values: Partial<PresentInstance> = {}): PresentInstance => ({
  id,
  process_id: 'prc_web',
  process_type: 'web',
  release_id: 'rel_2',
  status: 'running',
  status_reason: null,
  exits: 0,
  observed: null,
  candidate: false,
  is_pod: false,
  ...values,
});
const counts = (wants: DesiredProcess[], all: PresentInstance[]): [number, string[]] => {
  const { start, retire } = planStack(wants, all);
  return [start.reduce((sum, one) => sum + one.count, 0), retire];
};

describe('what an application needs', () => {
  test('as many instances as are wanted', () => {
    expect(counts([desired()], [])).toEqual([2, []]);
    expect(counts([desired()], [present('a')])).toEqual([1, []]);
    expect(counts([desired()], [present('a'), present('b')])).toEqual([0, []]);
  });

  test('of an older release they stay until the new ones are healthy', () => {
    const old = [present('a', { release_id: 'rel_1' }), present('b', { release_id: 'rel_1' })];
    expect(counts([desired()], old)).toEqual([2, []]);
    expect(counts([desired()], [...old, present('c'), present('d', { status: 'starting' })])).toEqual([0, []]);
    expect(counts([desired()], [...old, present('c'), present('d')])).toEqual([0, ['a', 'b']]);
  });

  test('of too many go those that do not run, then the newest', () => {
    expect(
      counts([desired({ instances: 1 })], [present('a', { status: 'crashed' }), present('b'), present('c')]),
    ).toEqual([0, ['c', 'a']]);
  });

  test('nothing stays where nothing is wanted, of any release', () => {
    expect(
      counts([desired({ instances: 0 })], [present('a'), present('b', { release_id: 'rel_1' })])[1].sort(),
    ).toEqual(['a', 'b']);
    expect(counts([desired({ release_id: null })], [present('a')])).toEqual([0, ['a']]);
  });

  test('instances of a process type that is gone go; what is stopping is left alone and not counted', () => {
    expect(
      counts(
        [desired({ instances: 1 })],
        [present('a', { process_id: 'prc_gone' }), present('b', { status: 'stopping' })],
      ),
    ).toEqual([1, ['a']]);
  });

  test('those of a deployment that is not active yet are left to it', () => {
    expect(
      counts(
        [desired({ instances: 1, release_id: 'rel_1' })],
        [present('a', { release_id: 'rel_1' }), present('b', { candidate: true })],
      ),
    ).toEqual([0, []]);
  });
});

describe('an application that moves from this machine to a cluster', () => {
  const onCluster = desired({ instances: 1, on_cluster: true });
  const before = desired({ instances: 1, release_id: 'rel_1', deployment_id: 'dep_1' });
  const old = present('old', { release_id: 'rel_1' });
  const pod = present('pod', { is_pod: true });
  const workload = {
    ...{ id: 'wkl', process_id: 'prc_web', process_type: 'web', release_id: 'rel_2', instances: 1 },
    ...{ obstacle: null, candidate: false },
  };

  test('stays where it is until it is deployed again', () => {
    expect(counts([before], [old])).toEqual([0, []]);
    expect(counts([before], [])).toEqual([1, []]);
    expect(planWorkloads([before], [old], [])).toEqual({ ensure: [], retire: [] });
  });

  test('keeps its instances until those on the cluster run, and starts none here', () => {
    expect(counts([onCluster], [old])).toEqual([0, []]);
    expect(counts([onCluster], [old, { ...pod, status: 'starting' }])).toEqual([0, []]);
    expect(planWorkloads([onCluster], [old], [])).toEqual({ ensure: [onCluster], retire: [] });
    expect(counts([onCluster], [old, pod])).toEqual([0, ['old']]);
    expect(planWorkloads([onCluster], [old, pod], [workload])).toEqual({ ensure: [], retire: [] });
  });

  test('moves back the same way, with a release that needs this machine', () => {
    const back = desired({ instances: 1, release_id: 'rel_3', deployment_id: 'dep_3' });
    expect(counts([back], [pod])).toEqual([1, []]);
    expect(planWorkloads([back], [pod], [workload])).toEqual({ ensure: [], retire: [] });
    const next = present('next', { release_id: 'rel_3' });
    expect(counts([back], [pod, next])).toEqual([0, []]);
    expect(planWorkloads([back], [pod, next], [workload])).toEqual({ ensure: [], retire: ['wkl'] });
  });
});

describe('an instance that ends', () => {
  const at = new Date('2026-01-31T09:30:00Z');

  test('is left alone for a second, doubled with each further exit up to a minute', () => {
    const exits = [at.toISOString()];
    expect(restartDelayMs({ exits: [], status: 'starting' }, at.getTime())).toBe(0);
    expect(restartDelayMs({ exits, status: 'starting' }, at.getTime())).toBe(1000);
    expect(restartDelayMs({ exits: [...exits, ...exits, ...exits], status: 'starting' }, at.getTime() + 500)).toBe(
      3500,
    );
    expect(restartDelayMs({ exits, status: 'crashed' }, at.getTime())).toBe(60_000);
    expect(restartDelayMs({ exits, status: 'starting' }, at.getTime() + 5000)).toBe(0);
  });

  test('is crashed after five exits within ten minutes', () => {
    let exits: string[] = [];
    for (let minute = 0; minute < 5; minute += 1) exits = appendExit(exits, new Date(at.getTime() + minute * 60_000));
    expect(isCrashed(exits)).toBe(true);
    expect(isCrashed(appendExit(exits, new Date(at.getTime() + 14 * 60_000)))).toBe(false);
  });
});
