import { describe, expect, it } from 'vitest';
import { bundledIn, trimmed } from './sbom.ts';

const component = (ref: string) => ({ 'bom-ref': ref });

describe('npm run sbom', () => {
  it('reads the bundled packages from the notices', () => {
    const notices =
      '# Third-party\n\n## nanoid 6.0.2 (MIT)\n\n## a text\n\n## @a/b 1.0.0-rc.1 (ISC)\n';

    expect(bundledIn(notices)).toEqual({ nanoid: '6.0.2', '@a/b': '1.0.0-rc.1' });
  });

  it('lists bundled packages without their dependencies', () => {
    const document = {
      components: ['zod@4', 'nanoid@6', 'of-nanoid@1'].map(component),
      dependencies: [
        { ref: 'tokenwright@1', dependsOn: ['zod@4', 'nanoid@6'] },
        { ref: 'zod@4', dependsOn: [] },
        { ref: 'nanoid@6', dependsOn: ['of-nanoid@1'] },
        { ref: 'of-nanoid@1', dependsOn: [] },
      ],
    };

    const { components, dependencies } = trimmed(document, { zod: '4', nanoid: '6' });

    expect(components).toEqual(['zod@4', 'nanoid@6'].map(component));
    expect(dependencies.find(({ ref }) => ref === 'nanoid@6')?.dependsOn).toEqual([]);
    expect(dependencies.map(({ ref }) => ref)).not.toContain('of-nanoid@1');
  });
});
