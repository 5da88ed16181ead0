// What a run of `npm run bench` does: its options.
import path from 'node:path';
import { parseArgs } from 'node:util';

export interface Plan {
  /** Programs `node` to measure; empty: the one that runs this. */
  nodes: string[];
  /** `targets`: empty projects that POST writes to. */
  size: { projects: number; volumes: number; targets: number };
  rounds: number;
  milliseconds: number;
  starts: number;
  /** Minutes of load for the measure of memory. */
  minutes: number;
  /** Rows of the table that a long list stands in. */
  rows: number;
  /** Measures whose name begins with one of them; empty: all. */
  only: string[];
  /** Folder for CPU profiles. */
  cpuProf: string | undefined;
}

const USUAL = {
  size: { projects: 20, volumes: 5000, targets: 500 },
  rounds: 7,
  milliseconds: 1500,
  starts: 5,
  minutes: 1,
  rows: 200_000,
};
const QUICK = {
  size: { projects: 5, volumes: 500, targets: 100 },
  rounds: 2,
  milliseconds: 500,
  starts: 2,
  minutes: 0.1,
  rows: 50_000,
};
const FULL = { minutes: 10, rows: 10_000_000 };

export const HELP = `npm run bench -- [options]
  --only=GET,POST     only measures whose name begins so: GET one, GET list, POST, PATCH, PUT, GraphQL, refusals,
                      memory, start, pages, replicas
  --node=<program>    the Node.js to measure; may be given more than once. Default: the one that runs this
  --minutes=N         minutes of load for the measure of memory (default ${USUAL.minutes})
  --rows=N            rows of the table for the measure of pages (default ${USUAL.rows})
  --full              ${FULL.minutes} minutes and ${FULL.rows} rows
  --rounds=N          rounds of each case (default ${USUAL.rounds})
  --quick             short and rough
  --cpu-prof=<folder> profiles the service under each case in place of comparing it, and prints where the time goes`;

/** @throws Error for an unknown option or a number that is none */
export function readPlan(): Plan | null {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  const { values } = parseArgs({
    options: {
      help: flag,
      quick: flag,
      full: flag,
      only: text,
      node: { ...text, multiple: true },
      minutes: text,
      rows: text,
      rounds: text,
      'cpu-prof': text,
    },
  });
  if (values.help) return null;
  const base = { ...(values.quick ? QUICK : USUAL), ...(values.full && FULL) };
  return {
    ...base,
    nodes: values.node?.map((file) => path.resolve(file)) ?? [],
    rounds: numberOf(values.rounds, base.rounds),
    minutes: numberOf(values.minutes, base.minutes),
    rows: numberOf(values.rows, base.rows),
    only: values.only?.split(',') ?? [],
    cpuProf: values['cpu-prof'],
  };
}

/** Whether a measurement was requested. */
export function isSelected(plan: Plan, name: string): boolean {
  return !plan.only.length || plan.only.some((word) => name.startsWith(word));
}

export function nodesOf(plan: Plan): string[] {
  return plan.nodes.length ? plan.nodes : [process.execPath];
}

function numberOf(text: string | undefined, usual: number): number {
  if (text === undefined) return usual;
  if (!(Number(text) > 0)) throw new Error(`${text} is not a number above 0`);
  return Number(text);
}
