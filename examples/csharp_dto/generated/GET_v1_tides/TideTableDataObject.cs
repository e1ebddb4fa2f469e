#nullable enable

using System;
using System.Collections.Generic;
using System.ComponentModel;
using System.ComponentModel.DataAnnotations;
using System.Text.Json;
using System.Text.Json.Serialization;

namespace Vell.Harbour.Tides;

// [REGEN:BEGIN TideTableDataObject]
[Description("Predicted water levels of one day at one harbour.")]
public class TideTableDataObject
{
    [JsonPropertyName("port")]
    [Required]
    public required PortCode Port { get; init; }

    [JsonPropertyName("day")]
    [Required]
    public required DateOnly Day { get; init; }

    [JsonPropertyName("datum")]
    [Description("What heights are measured from.")]
    public string? Datum { get; init; }

    [JsonPropertyName("levels")]
    [Required]
    public required IReadOnlyList<TideTableLevel> Levels { get; init; }

    [JsonPropertyName("windows")]
    public IReadOnlyList<TideWindow>? Windows { get; init; }
}
// [REGEN:END TideTableDataObject]

// [REGEN:BEGIN PortCode]
[JsonConverter(typeof(JsonStringEnumConverter))]
[Description("Harbours of the Sea of Vell, five letters each.")]
public enum PortCode
{
    [JsonStringEnumMemberName("ALDMO")]
    Aldmo,
    [JsonStringEnumMemberName("ALDNH")]
    Aldnh,
    [JsonStringEnumMemberName("ARNSK")]
    Arnsk,
    [JsonStringEnumMemberName("BALEY")]
    Baley,
    [JsonStringEnumMemberName("BARKH")]
    Barkh,
    [JsonStringEnumMemberName("BELVO")]
    Belvo,
    [JsonStringEnumMemberName("BIRKN")]
    Birkn,
    [JsonStringEnumMemberName("BORGA")]
    Borga,
    [JsonStringEnumMemberName("BRAMW")]
    Bramw,
    [JsonStringEnumMemberName("BRYNS")]
    Bryns,
    [JsonStringEnumMemberName("CALDR")]
    Caldr,
    [JsonStringEnumMemberName("CARRO")]
    Carro,
    [JsonStringEnumMemberName("CINDR")]
    Cindr,
    [JsonStringEnumMemberName("CLEVE")]
    Cleve,
    [JsonStringEnumMemberName("CORVA")]
    Corva,
    [JsonStringEnumMemberName("DELMA")]
    Delma,
    [JsonStringEnumMemberName("DORNE")]
    Dorne,
    [JsonStringEnumMemberName("DRAVN")]
    Dravn,
    [JsonStringEnumMemberName("DUNMO")]
    Dunmo,
    [JsonStringEnumMemberName("EASTK")]
    Eastk,
    [JsonStringEnumMemberName("EBBIN")]
    Ebbin,
    [JsonStringEnumMemberName("ELDRA")]
    Eldra,
    [JsonStringEnumMemberName("ELLIS")]
    Ellis,
    [JsonStringEnumMemberName("ERNHO")]
    Ernho,
    [JsonStringEnumMemberName("FALKE")]
    Falke,
    [JsonStringEnumMemberName("FENWA")]
    Fenwa,
    [JsonStringEnumMemberName("FIRTH")]
    Firth,
    [JsonStringEnumMemberName("GALEN")]
    Galen,
    [JsonStringEnumMemberName("GARNO")]
    Garno,
    [JsonStringEnumMemberName("GLASS")]
    Glass,
    [JsonStringEnumMemberName("GRIMO")]
    Grimo,
    [JsonStringEnumMemberName("HALDE")]
    Halde,
    [JsonStringEnumMemberName("HAVNA")]
    Havna,
    [JsonStringEnumMemberName("HOLMS")]
    Holms,
    [JsonStringEnumMemberName("INGLE")]
    Ingle,
    [JsonStringEnumMemberName("ISKRA")]
    Iskra,
    [JsonStringEnumMemberName("JORDA")]
    Jorda,
    [JsonStringEnumMemberName("KELDY")]
    Keldy,
    [JsonStringEnumMemberName("KESTR")]
    Kestr,
    [JsonStringEnumMemberName("KILDA")]
    Kilda,
    [JsonStringEnumMemberName("KVARN")]
    Kvarn,
    [JsonStringEnumMemberName("LANTR")]
    Lantr,
    [JsonStringEnumMemberName("LINDH")]
    Lindh,
    [JsonStringEnumMemberName("LOMVI")]
    Lomvi,
    [JsonStringEnumMemberName("MARSK")]
    Marsk,
    [JsonStringEnumMemberName("MELVA")]
    Melva,
    [JsonStringEnumMemberName("MORAY")]
    Moray,
    [JsonStringEnumMemberName("NARVE")]
    Narve,
    [JsonStringEnumMemberName("NESSA")]
    Nessa,
    [JsonStringEnumMemberName("NORDK")]
    Nordk,
    [JsonStringEnumMemberName("OAKEN")]
    Oaken,
    [JsonStringEnumMemberName("ORMSA")]
    Ormsa,
    [JsonStringEnumMemberName("OSTRA")]
    Ostra,
    [JsonStringEnumMemberName("PELLN")]
    Pelln,
    [JsonStringEnumMemberName("QUARR")]
    Quarr,
    [JsonStringEnumMemberName("RAVNS")]
    Ravns,
    [JsonStringEnumMemberName("ROSKE")]
    Roske,
    [JsonStringEnumMemberName("SALTA")]
    Salta,
    [JsonStringEnumMemberName("SKARV")]
    Skarv,
    [JsonStringEnumMemberName("STORM")]
    Storm,
    [JsonStringEnumMemberName("TARNE")]
    Tarne,
    [JsonStringEnumMemberName("TINDR")]
    Tindr,
    [JsonStringEnumMemberName("ULVEN")]
    Ulven,
    [JsonStringEnumMemberName("VARDA")]
    Varda,
    [JsonStringEnumMemberName("VELLS")]
    Vells,
    [JsonStringEnumMemberName("WESTK")]
    Westk,
    [JsonStringEnumMemberName("YARRO")]
    Yarro,
    [JsonStringEnumMemberName("ZEELA")]
    Zeela,
}
// [REGEN:END PortCode]

// [REGEN:BEGIN TideTableLevel]
public class TideTableLevel
{
    [JsonPropertyName("at")]
    [Required]
    public required TimeOnly At { get; init; }

    [JsonPropertyName("height")]
    [Required]
    public required decimal Height { get; init; }

    [JsonPropertyName("isHighWater")]
    public bool? IsHighWater { get; init; }
}
// [REGEN:END TideTableLevel]

// [REGEN:BEGIN TideWindow]
public class TideWindow
{
    [JsonPropertyName("opensAt")]
    [Required]
    public required DateTimeOffset OpensAt { get; init; }

    [JsonPropertyName("closesAt")]
    [Required]
    public required DateTimeOffset ClosesAt { get; init; }

    [JsonPropertyName("leastDepth")]
    public decimal? LeastDepth { get; init; }
}
// [REGEN:END TideWindow]
