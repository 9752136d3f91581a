import { useId } from 'preact/hooks';
import { TEXTS } from '../texts.ts';
import { NameField, pathText } from './branch-path.tsx';
import { Rows, Twisty } from './disclosure.tsx';
import {
  type Level,
  levelOf,
  levelsOf,
  type Resource,
  sharedParameters,
  withLevel,
} from './resources.ts';
import { usePicking } from './state.ts';
import { branchesTo, type Entry, isOpenScope, isReading } from './tree.ts';

export interface ResourceListProps {
  readonly resources: readonly Resource[];
  readonly open: ReadonlySet<Resource>;
  readonly toggle: (resource: Resource) => void;
}

/** A row for each permission, with a choice of its level; it opens to its endpoints. */
export function ResourceList({ resources, open, toggle }: ResourceListProps) {
  return (
    <Rows items={resources} label={TEXTS.picker.permissions} class="resources">
      {(resource) => (
        <li key={`${resource.domain} ${resource.name}`}>
          <ResourceRow
            resource={resource}
            isOpen={open.has(resource)}
            onToggle={() => toggle(resource)}
          />
          {open.has(resource) && (
            <div class="below">
              <Rows items={resource.write}>
                {(entry) => (
                  <li key={entry.index}>
                    <EndpointLine entry={entry} />
                  </li>
                )}
              </Rows>
            </div>
          )}
        </li>
      )}
    </Rows>
  );
}

interface ResourceRowProps {
  readonly resource: Resource;
  readonly isOpen: boolean;
  readonly onToggle: () => void;
}

function ResourceRow({ resource, isOpen, onToggle }: ResourceRowProps) {
  const { selection, change } = usePicking();
  const id = useId();
  const { name, description, write } = resource;
  const level = levelOf(selection, resource);
  const count = write.filter((entry) => selection.isSelected(entry)).length;
  const choices: readonly Level[] =
    level === 'custom' ? [...levelsOf(resource), level] : levelsOf(resource);
  return (
    <div class="row resource" data-row data-level={level}>
      <Twisty label={name} isOpen={isOpen} onToggle={onToggle} />
      <span class="what">
        <label class="resource-name" for={id} dir="auto">
          {name}
        </label>
        {description && (
          <span class="hint" id={`${id}-hint`} dir="auto">
            {description}
          </span>
        )}
      </span>
      <span class="tail">
        <span class="count">
          {count === 0
            ? TEXTS.picker.count({ count: write.length })
            : TEXTS.picker.countOf({ count, all: write.length })}
        </span>
        <select
          id={id}
          class="level"
          value={level}
          aria-describedby={description && `${id}-hint`}
          onChange={({ currentTarget }) => {
            const next = currentTarget.value as Level;
            if (next !== 'custom') change(withLevel(selection, resource, next));
          }}
        >
          {choices.map((choice) => (
            <option key={choice} value={choice} disabled={choice === 'custom'}>
              {TEXTS.picker.levels[choice]}
            </option>
          ))}
        </select>
      </span>
    </div>
  );
}

/** An endpoint in words, with its method and path in small type. */
export function EndpointLine({ entry }: { readonly entry: Entry }) {
  const { selection, change } = usePicking();
  const id = useId();
  const { scope, branch, words } = entry;
  const includedBy = selection.includedBy(entry);
  const path = pathOf(entry);
  return (
    <div class="row endpoint" data-row>
      <input
        type="checkbox"
        id={id}
        checked={selection.isSelected(entry)}
        disabled={includedBy !== undefined}
        aria-describedby={`${id}-path`}
        onChange={({ currentTarget }) => change(selection.with([entry], currentTarget.checked))}
      />
      <span class="what">
        <label for={id} dir="auto">
          {words.summary ?? `${scope.method} ${pathText(branch)}`}
          {words.deprecated && <span class="badge quiet">{TEXTS.picker.deprecated}</span>}
        </label>
        <span class="call" id={`${id}-path`}>
          <span class={`method ${isReading(entry) ? 'reading' : 'writing'}`}>{scope.method}</span>
          <bdi class="mono" dir="ltr">
            {path}
          </bdi>
          {includedBy && (
            <span class="quiet">{TEXTS.picker.includedBy({ scope: includedBy.toString() })}</span>
          )}
        </span>
      </span>
    </div>
  );
}

/** The host and the path, with the names of its parameters. */
function pathOf({ scope, branch }: Entry): string {
  const [host] = branchesTo(branch);
  const path = branch === host ? '/' : pathText(branch);
  return `${scope.domain}${path}${isOpenScope(scope) ? '/…' : ''}`;
}

/** One field for each parameter that all selected endpoints share. */
export function OnlyThisResource() {
  const { selection } = usePicking();
  const shared = sharedParameters(selection);
  if (shared.length === 0) return null;
  return (
    <fieldset class="only-this">
      <legend>{TEXTS.picker.onlyThis}</legend>
      <p class="hint">{TEXTS.picker.onlyThisHint}</p>
      <div class="only-fields">
        {shared.map((branch) => (
          <div class="field" key={branch.index}>
            <span class="mono" aria-hidden="true">
              {branch.label === branch.text ? pathText(branch) : branch.label.slice(1, -1)}
            </span>
            <NameField branch={branch} />
          </div>
        ))}
      </div>
    </fieldset>
  );
}
