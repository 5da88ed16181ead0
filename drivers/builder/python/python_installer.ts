// Installers of packages that no lock file belongs to: uv, and the pip of the environment where uv is not to be had.
import type { Tool } from '../../toolchain';
import { environmentBin } from './python_environment';
import { uvSettings } from './python_settings';

export interface Installer {
  name: 'uv pip install' | 'pip install';
  /** The command that installs these, and what the start needs besides; ends the step where it fails. */
  install(what: string): string;
  tools: Tool[];
  version: string | null;
}

/** The pip of the environment. @param added package that the start needs besides */
export function pipInstaller(added: string | null): Installer {
  const command = `${environmentBin}/python -m pip install`;
  return { name: 'pip install', install: (what) => installing(command, what, added), tools: [], version: null };
}

/** uv, with the settings of pip. @param added package that the start needs besides */
export function uvInstaller({ version, tools }: { version: string; tools: Tool[] }, added: string | null): Installer {
  const command = `${uvSettings}uv pip install --python ${environmentBin}/python`;
  return { name: 'uv pip install', install: (what) => installing(command, what, added), tools, version };
}

function installing(command: string, what: string, added: string | null): string {
  return `${[command, what, added ?? ''].filter(Boolean).join(' ')} || exit 1`;
}
