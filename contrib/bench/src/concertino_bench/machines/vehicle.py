"""The simulated car of BFCL: engine, doors, brakes, climate, tyres and navigation.

The invariant: what a look gives, such as a temperature, comes from a seeded series, so the same calls give the same.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, ClassVar

from .machine import Machine, State, error
from .published import NOTHING, Published

_TANK, _MILES_PER_GALLON = 50, 20.0
_ABOUT = "CAR_STATUS_METADATA_EXTENSION"
_FULLY = 1000.0
"""Newtons of a brake that is pressed fully."""
# Miles between zip codes, and the zip codes of the published cities.
_MILES = {
    frozenset(pair): miles
    for pair, miles in {
        ("83214", "74532"): 750.0,
        ("56108", "62947"): 320.0,
        ("71354", "83462"): 450.0,
        ("47329", "52013"): 290.0,
        ("69238", "51479"): 630.0,
        ("94016", "83214"): 980.0,
        ("94016", "94704"): 600.0,
        ("94704", "08540"): 2550.0,
        ("94016", "08540"): 1950.0,
        ("62947", "47329"): 1053.0,
        ("94016", "62947"): 780.0,
        ("74532", "94016"): 880.0,
    }.items()
}
_ZIP_CODES = {
    "Rivermist": "83214",
    "Stonebrook": "74532",
    "Maplecrest": "56108",
    "Silverpine": "62947",
    "Shadowridge": "71354",
    "Sunset Valley": "83462",
    "Oakendale": "47329",
    "Willowbend": "52013",
    "Crescent Hollow": "69238",
    "Autumnville": "51479",
    "San Francisco": "94016",
}
_TYRES = ("frontLeftTirePressure", "frontRightTirePressure", "rearLeftTirePressure", "rearRightTirePressure")
_SHOWN = {
    "fuel": {"fuelLevel": "fuelLevel"},
    "battery": {"batteryVoltage": "batteryVoltage"},
    "doors": {"doorStatus": "doorStatus"},
    "climate": {
        "currentACTemperature": "acTemperature",
        "fanSpeed": "fanSpeed",
        "climateMode": "acMode",
        "humidityLevel": "humidityLevel",
    },
    "headlights": {"headlightStatus": "headLightStatus"},
    "parkingBrake": {
        "parkingBrakeStatus": "parkingBrakeStatus",
        "parkingBrakeForce": "parkingBrakeForce",
        "slopeAngle": "slopeAngle",
    },
    "brakePedal": {"brakePedalStatus": "brakePedalStatus", "brakePedalForce": "brakePedalForce"},
    "engine": {"engineState": "engineState"},
}
# As published, the forces are no part of what is compared.
_HIDDEN = ("parkingBrakeForce", "slopeAngle", "brakePedalForce")


class Vehicle(Machine):
    """A car."""

    first: ClassVar[Mapping[str, Any]] = {
        "fuelLevel": 0.0,
        "batteryVoltage": 12.6,
        "engineState": "stopped",
        "doorStatus": dict.fromkeys(("driver", "passenger", "rear_left", "rear_right"), "unlocked"),
        "acTemperature": 25.0,
        "fanSpeed": 50,
        "acMode": "auto",
        "humidityLevel": 50.0,
        "headLightStatus": "off",
        "parkingBrakeStatus": "released",
        "parkingBrakeForce": 0.0,
        "slopeAngle": 0.0,
        "brakePedalStatus": "released",
        "brakePedalForce": 0.0,
        "distanceToNextVehicle": 50.0,
        "cruiseStatus": "inactive",
        "destination": "None",
        **dict.fromkeys(_TYRES[:2], 32.0),
        **dict.fromkeys(_TYRES[2:], 30.0),
    }

    def __init__(self, config: Mapping[str, Any], published: Published = NOTHING) -> None:
        super().__init__(config, published)
        self._random = random.Random(config.get("random_seed", 141053))

    def state(self) -> State:
        """What counts of its state."""
        return {name: value for name, value in self.kept.items() if name not in _HIDDEN}

    # -- driving -------------------------------------------------------------------------------------------------------

    def on_start_engine(self, ignitionMode: str) -> State:  # noqa: N803 - the published name
        if ignitionMode == "STOP":
            self.kept["engineState"] = "stopped"
        if unlocked := [door for door, status in self.kept["doorStatus"].items() if status != "locked"]:
            return error(f"The engine starts with locked doors only. Unlocked: {', '.join(unlocked)}")
        if self.kept["brakePedalStatus"] != "pressed" or self.kept["brakePedalForce"] != _FULLY:
            return error("The brake pedal must be pressed fully when the engine starts.")
        if self.kept["fuelLevel"] < 0:
            return error("Fuel tank is empty.")
        if ignitionMode != "START":
            return error("Invalid ignition mode.")
        self.kept["engineState"] = "running"
        return {name: self.kept[name] for name in ("engineState", "fuelLevel", "batteryVoltage")}

    def on_fill_fuel_tank(self, fuelAmount: float) -> State:  # noqa: N803 - the published name
        if fuelAmount < 0:
            return error("Fuel amount cannot be negative.")
        if self.kept["fuelLevel"] + fuelAmount > _TANK:
            return error("That is more than the capacity of the tank.")
        self.kept["fuelLevel"] += fuelAmount
        return {"fuelLevel": self.kept["fuelLevel"]}

    def on_set_cruise_control(self, speed: float, activate: bool, distanceToNextVehicle: float) -> State:  # noqa: N803
        if self.kept["engineState"] == "stopped":
            return error("The engine is off: start it first.")
        self.kept["distanceToNextVehicle"] = float(distanceToNextVehicle)
        if activate and (speed < 0 or speed > 120 or speed % 5 != 0):
            return error("Invalid speed")
        self.kept["cruiseStatus"] = "active" if activate else "inactive"
        told = {name: self.kept[name] for name in ("cruiseStatus", "distanceToNextVehicle")}
        return {**told, "currentSpeed": float(speed)}

    def on_get_current_speed(self) -> State:
        return {"currentSpeed": self._random.uniform(0.0, 120.0)}

    def on_set_navigation(self, destination: str) -> State:
        self.kept["destination"] = destination
        return {"status": f"Navigating to {destination}"}

    def on_estimate_drive_feasibility_by_mileage(self, distance: float) -> State:
        return {"canDrive": self.kept["fuelLevel"] * _MILES_PER_GALLON >= distance}

    def on_estimate_distance(self, cityA: str, cityB: str) -> State:  # noqa: N803 - the published names
        miles = _MILES.get(frozenset((cityA, cityB)))
        told = error("distance not found in database.") if miles is None else {"distance": miles}
        return told | self._more("intermediaryCities", "INTERMEDIARY_CITIES")

    def on_get_zipcode_based_on_city(self, city: str) -> State:
        return {"zipcode": _ZIP_CODES.get(city, "00000")}

    # -- brakes and doors ----------------------------------------------------------------------------------------------

    def on_lock_doors(self, unlock: bool, door: list[str]) -> State:
        status, doors = "unlocked" if unlock else "locked", self.kept["doorStatus"]
        for name in door:
            if name not in doors:
                return error(f"There is no door {name!r}; there are {', '.join(doors)}")
            doors[name] = status
        return {"lockStatus": status, "remainingUnlockedDoors": sum(each != "locked" for each in doors.values())}

    def on_activate_parking_brake(self, mode: str) -> State:
        if mode not in ("engage", "release"):
            return error("Invalid mode")
        status, force = ("engaged", 500.0) if mode == "engage" else ("released", 0.0)
        self.kept |= {"parkingBrakeStatus": status, "parkingBrakeForce": force, "slopeAngle": 10.0}
        told = {"parkingBrakeStatus": status, "_parkingBrakeForce": force, "_slopeAngle": 10.0}
        return self._more("parkingBrakeInstruction", "PARKING_BRAKE_INSTRUCTION") | told

    def on_press_brake_pedal(self, pedalPosition: float) -> State:  # noqa: N803 - the published name
        if not 0 <= pedalPosition <= 1:
            return error("A pedal position is a number from 0 to 1.")
        status = "pressed" if pedalPosition else "released"
        self.kept |= {"brakePedalStatus": status, "brakePedalForce": pedalPosition * _FULLY}
        return {"brakePedalStatus": status, "brakePedalForce": float(pedalPosition * _FULLY)}

    def on_release_brake_pedal(self) -> State:
        return self.on_press_brake_pedal(0)

    # -- comfort, and what can be seen ---------------------------------------------------------------------------------

    def on_adjust_climate_control(
        self,
        temperature: float,
        unit: str = "celsius",
        fanSpeed: int = 50,  # noqa: N803 - the published name
        mode: str = "auto",
    ) -> State:
        if not 0 <= fanSpeed <= 100:
            return error("A fan speed is a number from 0 to 100.")
        celsius = (temperature - 32) * 5 / 9 if unit == "fahrenheit" else temperature
        self.kept |= {"acTemperature": celsius, "fanSpeed": fanSpeed, "acMode": mode}
        return {
            "currentACTemperature": temperature,
            "climateMode": mode,
            "humidityLevel": self.kept["humidityLevel"],
        }

    def on_set_headlights(self, mode: str) -> State:
        if mode not in ("on", "off", "auto"):
            return error("Invalid headlight mode.")
        self.kept["headLightStatus"] = "on" if mode == "on" else "off"
        return {"headlightStatus": self.kept["headLightStatus"]}

    def on_display_car_status(self, option: str) -> State:
        if option not in _SHOWN:
            return error("Invalid option")
        told = {shown: self.kept[name] for shown, name in _SHOWN[option].items()}
        return self._more("metadata", _ABOUT) | told

    def on_check_tire_pressure(self) -> State:
        pressures = {name: self.kept[name] for name in _TYRES}
        healthy = 30 <= sum(pressures.values()) / 4 <= 35
        return {**pressures, "healthy_tire_pressure": healthy, "car_info": self.longer(_ABOUT, otherwise={})}

    def on_find_nearest_tire_shop(self) -> State:
        return {"shopLocation": "456 Oakwood Avenue, Rivermist, 83214"}

    def on_get_outside_temperature_from_google(self) -> State:
        return {
            **self.longer("LONG_WEATHER_EXTENSION", otherwise={}),
            "outsideTemperature": self._random.uniform(-10, 40),
        }

    def on_get_outside_temperature_from_weather_com(self) -> State:
        return {"error": 404}

    def on_display_log(self, messages: list[str]) -> State:
        return {"log": messages}

    def _more(self, key: str, name: str) -> State:
        """What a long answer has more."""
        return {key: self.published.constant(name)} if self.published.long else {}

    def on_liter_to_gallon(self, liter: float) -> State:
        return {"gallon": liter * 0.264172}

    def on_gallon_to_liter(self, gallon: float) -> State:
        return {"liter": gallon * 3.78541}
