// What an application is made of, and the presets.
export type Source = 'git' | 'upload' | 'preset' | 'image';

const SOURCES: [Source, string, string][] = [
  ['git', 'Git repository', 'Built from the files of a repository.'],
  ['upload', 'Folder or archive', 'Sent from this computer, without Git.'],
  ['preset', 'Preset', 'A program that is ready to run.'],
  ['image', 'Image', 'A container image, run as it is.'],
];

export function Sources({ chosen, choose }: { chosen: Source; choose(source: Source): void }) {
  return (
    <fieldset class="choices">
      <legend>Source</legend>
      {SOURCES.map(([value, label, hint]) => (
        <label key={value} class="choice">
          <input type="radio" name="from" checked={chosen === value} onChange={() => choose(value)} />
          <strong>{label}</strong>
          <small>{hint}</small>
        </label>
      ))}
    </fieldset>
  );
}

interface Preset {
  id: string;
  name: string;
  description: string;
  requires_engine: string | null;
}

interface PresetsProps {
  presets: readonly Preset[];
  chosen: string;
  choose(id: string): void;
}

export function Presets({ presets, chosen, choose }: PresetsProps) {
  return (
    <fieldset class="choices presets">
      <legend>Preset</legend>
      {presets.map((preset) => (
        <label key={preset.id} class="choice">
          <input
            type="radio"
            name="preset"
            required
            checked={chosen === preset.id}
            onChange={() => choose(preset.id)}
          />
          <strong>{preset.name}</strong>
          <small>
            {preset.description}
            {preset.requires_engine && ` Needs a ${preset.requires_engine} database.`}
          </small>
        </label>
      ))}
    </fieldset>
  );
}
