// What a release keeps of an application's settings and process types (models/deployments/release.ts).
import type { ImageSettings } from '../../core/protocols/image_settings';
import type { ApplicationHealthCheckType, ApplicationSettings } from '../../schema/types';

export type ReleaseSettings = Pick<ApplicationSettings, 'run' | 'http'> & {
  /** Where no type was set, the default has been filled in. */
  health_check: ApplicationSettings['health_check'] & { type: ApplicationHealthCheckType };
  /** Where commands start, relative to the files. */
  root_directory: string;
  /** Of an image: how it is run. Absent for files that were built. */
  image?: ImageSettings;
  /** `http.port` for files that were built, if it is set explicitly. */
  chosen_port?: number;
};

/** `cpus` in cores; `disk_mb` is missing in releases of before there was such a limit. */
export interface ReleaseProcess {
  command: string;
  memory_mb: number;
  cpus: number;
  disk_mb?: number;
}
