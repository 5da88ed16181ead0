import type { OciBuilderName, ProgramName } from '../host_facts';

/** What a thing needs of the host. All programs; the engine. */
export interface Needs {
  programs?: ProgramName[];
  engine?: string;
  ociBuilder?: OciBuilderName;
}
