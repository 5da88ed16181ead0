import { execFileSync } from 'node:child_process';

export function hasBuildah(): boolean {
  try {
    execFileSync('buildah', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
