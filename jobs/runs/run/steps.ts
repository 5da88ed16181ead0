// The way of a run, from its command to what is left of it. A run is canceled within the steps: its command has time
// to end.
import type { WorkflowStep } from '../../workflow';
import { storeOutput } from './end';
import { removeLeft } from './remove';
import { isFinished, type RunRow } from './row';
import { startRunCommand } from './start';
import { waitForExit } from './wait';

export const steps: readonly WorkflowStep<RunRow>[] = [
  {
    // On the host or a cluster, which may wait for room. A command that was started before is found.
    name: 'start',
    task: 'start the command',
    isDone: (row) => row.status === 'running' || isFinished(row),
    run: startRunCommand,
  },
  {
    // Until the command has ended, or was ended by a limit or a cancellation.
    name: 'wait',
    task: 'wait for the command',
    isDone: (row) => row.exit_code !== null || isFinished(row),
    run: waitForExit,
  },
  {
    // The last line is in the log before the status says how the run ended.
    name: 'output',
    task: 'store the output of the command',
    isDone: isFinished,
    run: storeOutput,
  },
  {
    // Once nobody attaches to it any more. It is asked again until nothing is left.
    name: 'remove',
    task: 'remove what the run left',
    isDone: () => false,
    run: removeLeft,
  },
];
