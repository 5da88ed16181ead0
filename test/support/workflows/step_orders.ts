// Orders for the program of a test: to be killed, to fail or to wait at a step of a workflow.
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { waitFor } from '../wait_for';

export interface StepOrder {
  workflow: string;
  step: string;
  /** `kill_within`: after so many milliseconds of it, at its end at the latest. `wait`: for so long, else for ever. */
  act: 'kill_within' | 'kill_after' | 'fail' | 'wait';
  afterMs?: number;
}

export interface StepOrders {
  /** To be given to the program. */
  settings: Record<string, string>;
  /** The first time that a row of the owner is at the step. */
  give(owner: string, order: StepOrder): void;
  met(owner: string): Promise<unknown>;
}

export function openStepOrders(): StepOrders {
  const directory = mkdtempSync(path.join(tmpdir(), 'step-orders-'));
  afterAll(() => rmSync(directory, { recursive: true, force: true }));
  const file = (owner: string, end: string): string => path.join(directory, `${owner}.${end}`);
  return {
    settings: { STEP_ORDERS: directory },
    give(owner, order) {
      rmSync(file(owner, 'met'), { force: true });
      writeFileSync(file(owner, 'json'), JSON.stringify(order));
    },
    met: (owner) => waitFor(`the step of ${owner}`, () => Promise.resolve(existsSync(file(owner, 'met'))), 120_000),
  };
}
