// kubectl, as a witness that is not ours.
import { execFile, spawn } from 'node:child_process';
import { promisify } from 'node:util';

/** @returns what it printed. @throws Error with its standard error */
export async function kubectl(kubeconfig: string, ...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)('kubectl', ['--kubeconfig', kubeconfig, ...args], {
    maxBuffer: 1 << 26,
    env: { ...process.env, KUBECONFIG: kubeconfig },
  });
  return stdout;
}

/** `kubectl apply` of one object or several. */
export async function kubectlApply(kubeconfig: string, ...objects: object[]): Promise<void> {
  const child = spawn('kubectl', ['--kubeconfig', kubeconfig, 'apply', '-f', '-'], {
    stdio: ['pipe', 'ignore', 'pipe'],
  });
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  child.stdin.end(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }));
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  if (code !== 0) throw new Error(`kubectl apply failed with ${code}: ${errors}`);
}
