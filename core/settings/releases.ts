// Where newer releases come from.
import { flag, httpUrlSetting, path } from '../setting_types';

export const releaseSettings = {
  RELEASES_URL: httpUrlSetting({
    default: null,
    description:
      'Address of a folder with releases and their signed index, for `platform upgrade` without a file. Nothing is ' +
      'sent there but the version that asks.',
  }),
  RELEASES_KEY_FILE: path({
    default: null,
    derived: 'the key that came with the release',
    description: 'File with the public key (Ed25519, PEM) that the index at RELEASES_URL is signed with.',
  }),
  RELEASES_NOTICE: flag({
    default: '1',
    description: 'Whether RELEASES_URL is asked once a day for a newer version, which the dashboard then announces.',
  }),
};
