// A resource under test: what its driver is tested with, and the steps in which the loop brings it about.
import { setTimeout as sleep } from 'node:timers/promises';
import { DriverError, driverContext } from '../../core/driver';
import type { Desired, DriverContext, Ensured, Observation, Owned, ResourceDriver } from '../../core/driver';
import type { Recipe } from './child';

export interface ResourceFixture<S, O> {
  driver: ResourceDriver<S, O>;
  /** The same driver for another process. */
  recipe: Recipe;
  spec: S;
  /** A spec that a resource made with `spec` can be brought to. */
  changed: S;
  /** Where two resources cannot have the same spec: that of this id. */
  specOf?(spec: S, id: string): S;
  /** Everything in the outside world that the driver could have changed: equal means that it changed nothing. */
  snapshot(): Promise<unknown>;
  /** Puts something into the resource that must survive, and looks whether it did. */
  use(observed: O, r: Desired<S>): Promise<void>;
  check(observed: O, r: Desired<S>): Promise<void>;
  /** Ways in which the world gets out of step by itself. */
  drifts: Record<string, (id: string) => Promise<void>>;
  /** Puts something that is not ours where the resource would be, and takes it away. */
  plantForeign(id: string): Promise<void>;
  uprootForeign(id: string): Promise<void>;
  /** How often a step is killed at one of its continuations, and at random; less than usual where each takes long. */
  kills?: { sample: number; random: number };
  /** A step of it takes seconds: it gets more of them, and what is killed is killed less often. */
  slow?: true;
  /** Fails when anything is left over. */
  close(): Promise<void>;
}

export const stepMs = 20_000;
/** The loop tries for minutes. Five rounds at once were over before a busy machine had let go of a loop device. */
const convergenceMs = 15_000;
const slowConvergenceMs = 60_000;
const pauseMs = 50;

let minted = 0;

export async function made<S, O>(fixture: ResourceFixture<S, O>): Promise<Desired<S>> {
  const r = mint(fixture);
  await converged(fixture, r);
  return { ...r, ref: { driver: fixture.driver.name, name: r.id } };
}

// As the loop does it: look, step, look, a few times; only what passes by itself may fail on the way.
export async function converged<S, O>(fixture: ResourceFixture<S, O>, r: Desired<S>): Promise<void> {
  const end = Date.now() + (fixture.slow ? slowConvergenceMs : convergenceMs);
  const failures = new Set<string>();
  const retryAfterTransient = (error: unknown) => {
    if (!(error instanceof DriverError) || error.reason !== 'transient') throw error;
    failures.add([error.message, error.cause].join('\n'));
    return error.retryAfterMs;
  };
  for (let round = 0; round < 5 || Date.now() < end; round += 1) {
    const waitMs = await step(fixture, r).then(({ requeueMs }) => requeueMs, retryAfterTransient);
    const seen = await observe(fixture, r);
    if (seen.state === 'present' && seen.upToDate) return;
    await sleep(waitMs ?? pauseMs);
  }
  const seen = JSON.stringify(await observe(fixture, r));
  throw new Error(`not up to date: ${seen}. What failed on the way: ${[...failures].join('\n') || 'nothing'}`);
}

// As the loop does it: a program that a killed call has left may still be at work.
export async function removed<S, O>(fixture: ResourceFixture<S, O>, r: Desired<S>): Promise<void> {
  for (const end = Date.now() + stepMs; ;) {
    try {
      return await fixture.driver.remove(r, await observe(fixture, r), driverContext(stepMs));
    } catch (error) {
      if (!(error instanceof DriverError) || error.reason !== 'transient' || Date.now() > end) throw error;
      await sleep(error.retryAfterMs ?? pauseMs);
    }
  }
}

export async function destroyed<S, O>(fixture: ResourceFixture<S, O>, r: Desired<S>): Promise<void> {
  await removed(fixture, r);
  expect(await observe(fixture, r)).toEqual({ state: 'absent' });
}

export async function step<S, O>(fixture: ResourceFixture<S, O>, r: Desired<S>): Promise<Ensured> {
  const ensured = await fixture.driver.ensure(r, await observe(fixture, r), driverContext(stepMs));
  expect(ensured.ref).toEqual({ driver: fixture.driver.name, name: r.id });
  return ensured;
}

export function observe<S, O>(fixture: ResourceFixture<S, O>, r: Desired<S>): Promise<Observation<O>> {
  return fixture.driver.observe(r, driverContext(stepMs));
}

export async function listed<S, O>(fixture: ResourceFixture<S, O>): Promise<Owned[]> {
  const found: Owned[] = [];
  for await (const owned of fixture.driver.list(driverContext(stepMs))) found.push(owned);
  return found;
}

export function mint<S, O>(fixture: ResourceFixture<S, O>): Desired<S> {
  const id = `res_${process.pid}x${++minted}`;
  return { id, spec: fixture.specOf?.(fixture.spec, id) ?? fixture.spec };
}

/** The same resource as it is to become. */
export function changed<S, O>(fixture: ResourceFixture<S, O>, r: Desired<S>): Desired<S> {
  return { ...r, spec: fixture.specOf?.(fixture.changed, r.id) ?? fixture.changed };
}

export function observedOf<O>(seen: Observation<O>): O {
  if (seen.state !== 'present') throw new Error(`it is ${seen.state}`);
  return seen.observed;
}

export function aborted(): DriverContext {
  return { deadline: Date.now() + stepMs, signal: AbortSignal.abort() };
}
