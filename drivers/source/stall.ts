// Kills a Git whose remote is silent. Time alone does not tell: on a busy machine a Git that is well takes long, while
// one that waits for a silent remote neither computes nor receives.
import { readFile } from 'node:fs/promises';

const SAMPLES = 5;
/** As proc(5) counts processor time. */
const TICK_MS = 10;
/** Git wakes 20 times a second to see whether something has come. */
const IDLE_SHARE = 0.05;

interface Sample {
  processorMs: number;
  /** Waits for the processor or a disk, and not for the remote. */
  isBusy: boolean;
}

/**
 * @param bytes received so far
 * @param onStall called once nothing has moved for `ms`
 * @returns stops the watch
 */
export function watchStall(pid: number, ms: number, bytes: () => Promise<number>, onStall: () => void): () => void {
  let timer: NodeJS.Timeout;
  let stopped = false;
  let before = { bytes: 0, processorMs: 0 };
  let unchangedSamples = 0;
  const everyMs = ms / SAMPLES;
  const sample = async (): Promise<void> => {
    const [tree, received] = await Promise.all([sampleProcesses(pid), bytes()]);
    // Its process group may be that of another program by now.
    if (stopped) return;
    const now = { bytes: received, processorMs: tree.processorMs };
    const computes = now.processorMs - before.processorMs > Math.max(TICK_MS, everyMs * IDLE_SHARE);
    // Samples are counted, not time: a platform that gets no processor time itself takes them late.
    unchangedSamples = tree.isBusy || computes || now.bytes !== before.bytes ? 0 : unchangedSamples + 1;
    before = now;
    if (unchangedSamples >= SAMPLES) return onStall();
    timer = setTimeout(() => void sample(), everyMs);
  };
  timer = setTimeout(() => void sample(), everyMs);
  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}

/** The process and its descendants (proc(5)); where there is no /proc, only bytes count. */
async function sampleProcesses(pid: number): Promise<Sample> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  const [state = '', ...fields] = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const own = Number(fields[10]) + Number(fields[11]);
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
  const samples = await Promise.all(
    children
      .split(' ')
      .filter(Boolean)
      .map((child) => sampleProcesses(Number(child))),
  );
  return {
    processorMs: samples.reduce((sum, one) => sum + one.processorMs, (own || 0) * TICK_MS),
    isBusy: state === 'R' || state === 'D' || samples.some(({ isBusy }) => isBusy),
  };
}
