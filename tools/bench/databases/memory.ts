// Memory of the service and of all programs that it has started, but for units: servers and applications of tenants.
import { readFileSync } from 'node:fs';

const SAMPLE_MS = 100;

/** Of a process and its descendants, in megabytes; 0 where it has ended. */
function megabytesOf(pid: number | string): number {
  try {
    const [, kilobytes = 0] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
    return children
      .filter((child) => !isEmbeddedServer(child))
      .reduce((sum, child) => sum + megabytesOf(child), Number(kilobytes) / 1024);
  } catch {
    return 0;
  }
}

/** The database of the service, whose pages are counted by each of its processes. */
function isEmbeddedServer(pid: string): boolean {
  return /postgres/.test(readFileSync(`/proc/${pid}/comm`, 'utf8'));
}

/** @returns what `work` returns, with the most megabytes meanwhile, and its seconds */
export async function measured<T>(
  pid: number,
  work: () => Promise<T>,
): Promise<{ result: T; megabytes: number; seconds: number }> {
  const began = performance.now();
  let megabytes = megabytesOf(pid);
  const sampler = setInterval(() => (megabytes = Math.max(megabytes, megabytesOf(pid))), SAMPLE_MS);
  try {
    const result = await work();
    return { result, megabytes: Math.round(megabytes), seconds: (performance.now() - began) / 1000 };
  } finally {
    clearInterval(sampler);
  }
}
