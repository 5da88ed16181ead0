// npm run bench: the API beside a hand-written server on the same data, in one run on one machine.
//   npm run bench -- --help
// Every response is verified; a wrong one ends the run with exit code 1. docs/PERFORMANCE.md describes the
// measurements.
import { spawnSync } from 'node:child_process';
import os from 'node:os';
import { compareCases, profileCases } from './compare';
import { memoryUnderLoad } from './memory';
import { CONNECTIONS } from './measure';
import { fillTable, pages } from './pages';
import { HELP, nodesOf, readPlan, type Plan } from './plan';
import { costOfRefusals } from './refused';
import { replicas } from './replicas';
import { rowTable, type Row } from './report';
import { onStage, type Stage } from './stage';
import { timeStarts } from './starts';
import { printLine } from './run';

async function main(): Promise<void> {
  const plan = readPlan();
  if (!plan) return printLine(HELP);
  const nodes = nodesOf(plan);
  printMachine(plan);
  await onStage(plan, nodes[0] as string, async (stage) => {
    if (plan.cpuProf) return profileCases(stage, { node: nodes[0] as string, print: printLine });
    const tables = new Map<string, Row[]>();
    for (const node of nodes) tables.set(node, await measureAll(stage, node));
    await longList(stage, tables);
    for (const [node, rows] of tables) printLine(`\nNode ${versionOf(node)}\n\n${rowTable(rows)}`);
    printLine(
      `\nLoad of the machine at the end: ${os
        .loadavg()
        .map((value) => value.toFixed(1))
        .join(', ')}`,
    );
  });
}

async function measureAll(stage: Stage, node: string): Promise<Row[]> {
  printProgress(`Node ${versionOf(node)}`);
  const rows: Row[] = [];
  const sections = [
    () => timeStarts(stage, node),
    () => compareCases(stage, { node, print: printProgress }),
    () => costOfRefusals(stage, node, printProgress),
    () => memoryUnderLoad(stage, node),
    () => replicas(stage, node),
  ];
  for (const section of sections) {
    const found = await section();
    // What a run has measured is printed even if it breaks off later.
    if (found.length) printProgress(rowTable(found));
    rows.push(...found);
  }
  return rows;
}

/** Last, because the other measures are of a table of usual size. */
async function longList(stage: Stage, tables: Map<string, Row[]>): Promise<void> {
  const list = await fillTable(stage, printProgress);
  if (!list) return;
  for (const [node, rows] of tables) rows.push(...(await pages(stage, list, node)), list.row);
}

function printMachine({ size, rounds, milliseconds }: Plan): void {
  const load = os.loadavg()[0] as number;
  const cores = os.availableParallelism();
  printLine(
    `${cores} cores (${os.cpus()[0]?.model.trim()}), ${os.platform()} ${os.release()}; ${size.projects} projects ` +
      `of ${size.volumes} volumes, ${CONNECTIONS} connections, ${rounds} rounds of ${milliseconds} ms`,
  );
  const noise = load > cores / 4 ? ': others work here too, the numbers are NOISY' : '';
  printLine(`Load of the machine before: ${load.toFixed(1)}${noise}`);
}

const versionOf = (node: string): string => spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout.trim().slice(1);

/** How far the run is. */
function printProgress(line: string): void {
  process.stderr.write(`${line}\n`);
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

main().catch((error: unknown) => {
  process.stderr.write(`bench: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
});
