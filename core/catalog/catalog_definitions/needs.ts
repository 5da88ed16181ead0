import type { OciBuilderName, ProgramName } from '../host_facts';

/** Requirements on the host: all of the programs, and the engine. */
export interface Needs {
  programs?: ProgramName[];
  engine?: string;
  ociBuilder?: OciBuilderName;
}
