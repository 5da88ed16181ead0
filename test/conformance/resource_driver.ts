// What every ResourceDriver must do, whatever it drives. A driver ships only if it passes.
// Each step is killed at one continuation in every run, at a sample of them in the heavy tier, and at every single one
// with CONFORMANCE_KILLS=all.
import { driverContext, type Desired } from '../../core/driver';
import { isHeavyRun, killsAll } from '../support/processes/kills';
import { countContinuations, killAfter, killAtContinuation } from './child';
import {
  aborted,
  changed,
  converged,
  destroyed,
  listed,
  observe,
  made,
  mint,
  observedOf,
  removed,
  step,
  stepMs,
  type ResourceFixture,
} from './resource_steps';

export type { ResourceFixture } from './resource_steps';

const usualKills = { sample: 8, random: 3 };
const singleKill = { sample: 1, random: 0 };
/** On a busy host a step may take fewer continuations than were counted, and end before it is killed. */
const KILL_ROUNDS_MAX = 4;
const timeoutMs = 300_000;

export function describeResourceDriver<S, O>(name: string, makeFixture: () => Promise<ResourceFixture<S, O>>): void {
  describe(name, () => {
    let fixture: ResourceFixture<S, O>;
    beforeAll(async () => void (fixture = await makeFixture()));
    afterAll(() => fixture.close());

    test(
      'ensure makes it; a second one changes nothing',
      async () => {
        const r = await made(fixture);
        const before = await fixture.snapshot();
        await step(fixture, r);
        expect(await fixture.snapshot()).toEqual(before);
        await destroyed(fixture, r);
      },
      timeoutMs,
    );

    test(
      'ensure brings it to a changed spec and keeps what is in it',
      async () => {
        const r = await made(fixture);
        await fixture.use(observedOf(await observe(fixture, r)), r);
        const next = changed(fixture, r);
        expect(await observe(fixture, next)).toMatchObject({ state: 'present', upToDate: false });
        await converged(fixture, next);
        await fixture.check(observedOf(await observe(fixture, next)), next);
        await destroyed(fixture, next);
      },
      timeoutMs,
    );

    test(
      'observe never modifies',
      async () => {
        const [present, foreign, absent] = [await made(fixture), mint(fixture), mint(fixture)];
        await fixture.plantForeign(foreign.id);
        const before = await fixture.snapshot();
        expect(await observe(fixture, present)).toMatchObject({ state: 'present', upToDate: true });
        expect(await observe(fixture, changed(fixture, present))).toMatchObject({
          state: 'present',
          upToDate: false,
        });
        expect(await observe(fixture, foreign)).toMatchObject({ state: 'foreign' });
        expect(await observe(fixture, absent)).toEqual({ state: 'absent' });
        expect(await fixture.snapshot()).toEqual(before);
        await fixture.uprootForeign(foreign.id);
        await destroyed(fixture, present);
      },
      timeoutMs,
    );

    test(
      'remove twice, and remove what never was',
      async () => {
        const before = await fixture.snapshot();
        const r = await made(fixture);
        await destroyed(fixture, r);
        await destroyed(fixture, r);
        await destroyed(fixture, mint(fixture));
        expect(await fixture.snapshot()).toEqual(before);
      },
      timeoutMs,
    );

    test(
      'drift is seen and repaired',
      async () => {
        for (const [kind, drift] of Object.entries(fixture.drifts)) {
          const r = await made(fixture);
          await drift(r.id);
          expect({ kind, ...(await observe(fixture, r)) }).toMatchObject({ kind, state: 'present', upToDate: false });
          await converged(fixture, r);
          await destroyed(fixture, r);
        }
      },
      timeoutMs,
    );

    test(
      'a foreign object at our name is refused and never touched',
      async () => {
        const r = mint(fixture);
        await fixture.plantForeign(r.id);
        const before = await fixture.snapshot();
        await expect(step(fixture, r)).rejects.toMatchObject({ name: 'DriverError', reason: 'conflict' });
        await removed(fixture, r);
        expect((await listed(fixture)).map((owned) => owned.owner_id)).not.toContain(r.id);
        expect(await fixture.snapshot()).toEqual(before);
        await fixture.uprootForeign(r.id);
      },
      timeoutMs,
    );

    test(
      'a step whose time is over does nothing',
      async () => {
        const [present, absent] = [await made(fixture), mint(fixture)];
        const before = await fixture.snapshot();
        const over = { name: 'DriverError', reason: 'transient' };
        for (const ctx of [aborted(), { ...driverContext(stepMs), deadline: Date.now() - 1 }]) {
          await expect(fixture.driver.observe(present, ctx)).rejects.toMatchObject(over);
          await expect(fixture.driver.ensure(absent, { state: 'absent' }, ctx)).rejects.toMatchObject(over);
          await expect(fixture.driver.remove(present, await observe(fixture, present), ctx)).rejects.toMatchObject(
            over,
          );
        }
        expect(await fixture.snapshot()).toEqual(before);
        await destroyed(fixture, present);
      },
      timeoutMs,
    );

    test(
      'a step that is aborted in the middle ends soon, and the next one goes on',
      async () => {
        for (const ms of fixture.slow ? [1, 10, 100, 700] : [1, 3, 6, 10, 20, 40]) {
          const r = mint(fixture);
          const begin = Date.now();
          const end = await fixture.driver
            .ensure(r, { state: 'absent' }, driverContext(ms))
            .catch((error: unknown) => error);
          expect(Date.now() - begin).toBeLessThan(ms + 1_000);
          if (end instanceof Error) expect(end).toMatchObject({ name: 'DriverError', reason: 'transient' });
          await converged(fixture, r);
          await destroyed(fixture, r);
        }
      },
      timeoutMs,
    );

    test(
      'list finds orphans',
      async () => {
        const [one, two] = [await made(fixture), await made(fixture)];
        const found = await listed(fixture);
        for (const r of [one, two]) expect(found).toContainEqual({ ref: r.ref, owner_id: r.id });
        await destroyed(fixture, one);
        expect((await listed(fixture)).map((owned) => owned.owner_id)).toEqual([two.id]);
        await destroyed(fixture, two);
        expect(await listed(fixture)).toEqual([]);
      },
      timeoutMs,
    );

    test(
      'killed while it makes: the next step goes on',
      async () => {
        await killedEverywhere(
          fixture,
          'ensure',
          async () => mint(fixture),
          (r) => converged(fixture, r),
        );
      },
      timeoutMs,
    );

    test(
      'killed while it changes: the next step goes on, nothing is lost',
      async () => {
        const inUse = async () => {
          const r = await made(fixture);
          await fixture.use(observedOf(await observe(fixture, r)), r);
          return changed(fixture, r);
        };
        await killedEverywhere(fixture, 'ensure', inUse, async (r) => {
          await converged(fixture, r);
          await fixture.check(observedOf(await observe(fixture, r)), r);
        });
      },
      timeoutMs,
    );

    test(
      'killed while it removes: the next step ends it',
      async () => {
        await killedEverywhere(
          fixture,
          'remove',
          () => made(fixture),
          (r) => removed(fixture, r),
        );
      },
      timeoutMs,
    );

    test(
      'killed while it makes and then not wanted any more: nothing is left',
      async () => {
        await killedEverywhere(
          fixture,
          'ensure',
          async () => mint(fixture),
          async () => {
            for (const { owner_id } of await listed(fixture))
              await removed(fixture, { ...mint(fixture), id: owner_id });
          },
        );
      },
      timeoutMs,
    );
  });
}

// Real SIGKILLs of a child: at its continuations, counted, and at random moments, when a program it started is at work.
async function killedEverywhere<S, O>(
  fixture: ResourceFixture<S, O>,
  verb: 'ensure' | 'remove',
  prepare: () => Promise<Desired<S>>,
  goOn: (r: Desired<S>) => Promise<void>,
): Promise<void> {
  const { sample: most, random } = isHeavyRun() || killsAll ? (fixture.kills ?? usualKills) : singleKill;
  const empty = await fixture.snapshot();
  const first = await prepare();
  const begin = Date.now();
  const total = await countContinuations({ recipe: fixture.recipe, verb, desired: first });
  const span = Date.now() - begin;
  await destroyed(fixture, first);
  let kills = 0;
  const killed = async (kill: (r: Desired<S>) => Promise<boolean>) => {
    const r = await prepare();
    if (await kill(r)) kills++;
    await goOn(r);
    await destroyed(fixture, r);
  };
  for (let round = 0; round < KILL_ROUNDS_MAX && kills <= most / 3; round += 1)
    for (const n of sample(total, most))
      await killed((r) => killAtContinuation({ recipe: fixture.recipe, verb, desired: r }, n)).catch(
        withContext(`killed at continuation ${n} of ${total}`),
      );
  for (let i = 0; i < random; i++) {
    const ms = span * (0.4 + 0.6 * Math.random());
    await killed((r) => killAfter({ recipe: fixture.recipe, verb, desired: r }, ms)).catch(
      withContext(`killed after ${ms} ms of ${span}`),
    );
  }
  expect(kills).toBeGreaterThan(most / 3);
  expect(await listed(fixture)).toEqual([]);
  expect(await fixture.snapshot()).toEqual(empty);
}

function sample(total: number, most: number): number[] {
  if (killsAll) return Array.from({ length: total }, (_, i) => i + 1);
  const stride = total / most;
  return Array.from({ length: most }, (_, i) => 1 + Math.floor((i + Math.random()) * stride));
}

function withContext(where: string): (error: unknown) => never {
  return (error) => {
    throw new Error(`${where}: ${(error as Error).message}`, { cause: error });
  };
}
