/** Lua of PUC-Rio. */
import { missingRights } from '../support/fixtures.ts';
import { describeLuaScenarios } from './lua-scenarios.ts';
import { findLuas } from './luas.ts';

const luas = missingRights ? [] : findLuas();

describeLuaScenarios(luas.map((lua) => ({ ...lua, mode: 'interpreter', frameType: 'lua' })));
